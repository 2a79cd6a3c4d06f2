package store

import "fmt"

// Level is what stored data survives (S-5).
type Level uint8

// Levels, weakest first. The zero value requires nothing.
const (
	LevelNone    Level = iota // no promise required
	LevelMemory               // lives as long as the server or process that holds it
	LevelProcess              // survives the death of host and server processes
	LevelPower                // survives power loss of the machine
)

var levelNames = [...]string{"none", "memory", "process", "power"}

// String is the level's word.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// MarshalText writes the level's word.
func (l Level) MarshalText() ([]byte, error) {
	if int(l) >= len(levelNames) {
		return nil, fmt.Errorf("durability level %d is unknown", uint8(l))
	}
	return []byte(levelNames[l]), nil
}

// UnmarshalText reads the level's word.
func (l *Level) UnmarshalText(text []byte) error {
	for i, n := range levelNames {
		if n == string(text) {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("durability level %q is unknown; use memory, process or power", text)
}

// Durability is the pair that a store states, probes and acknowledges (S-5).
type Durability struct {
	Level    Level `json:"level"`
	Replicas int   `json:"replicas"` // copies on other machines that confirmed
}

// Reaches reports whether both parts of d are at least those of want.
func (d Durability) Reaches(want Durability) bool {
	return d.Level >= want.Level && d.Replicas >= want.Replicas
}

// String is "power" or "power+1", the form that ParseDurability reads.
func (d Durability) String() string {
	if d.Replicas == 0 {
		return d.Level.String()
	}
	return fmt.Sprintf("%s+%d", d.Level, d.Replicas)
}
