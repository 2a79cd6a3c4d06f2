//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package disk

import (
	"errors"
	"os"
)

// SightOf answers errors.ErrUnsupported.
func SightOf(*os.File) (Sight, error) { return Sight{}, errors.ErrUnsupported }

// look answers errors.ErrUnsupported.
func look(*os.File, string) (Sight, error) { return Sight{}, errors.ErrUnsupported }
