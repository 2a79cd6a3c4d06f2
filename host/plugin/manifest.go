package plugin

import (
	"fmt"

	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// ParseManifest reads a manifest: at most pluginapi.MaxManifestBytes of JSON,
// decoded strictly and valid. Nothing of the plugin runs.
func ParseManifest(data []byte) (pluginapi.Manifest, error) {
	if len(data) > pluginapi.MaxManifestBytes {
		return pluginapi.Manifest{}, fmt.Errorf("manifest: %d bytes; at most %d", len(data), pluginapi.MaxManifestBytes)
	}
	var m pluginapi.Manifest
	if err := strictjson.Unmarshal(data, &m); err != nil {
		return pluginapi.Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if err := m.Validate(); err != nil {
		return pluginapi.Manifest{}, err
	}
	return m, nil
}
