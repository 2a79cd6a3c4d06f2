package ticket

import (
	"fmt"
	"strings"

	"github.com/loophost/loophost/host/ticket"
)

// maxSlug keeps ids that are made from titles short enough to type.
const maxSlug = 40

// slug makes an id of a title: its letters and digits in ASCII, lower case, with
// dashes between. "" where there are none.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	out := ""
	for _, w := range words {
		if out != "" {
			w = "-" + w
		}
		if len(out)+len(w) > maxSlug {
			if out == "" {
				out = w[:maxSlug]
			}
			break
		}
		out += w
	}
	return out
}

// freeID is a slug that no ticket has, with a number behind it where need be. A title
// without any letter that an id may have gets a new id.
func freeID(s *ticket.State, slug string, newID func() string) string {
	if slug == "" {
		return "t-" + newID()
	}
	for n := 1; ; n++ {
		id := slug
		if n > 1 {
			id = fmt.Sprintf("%s-%d", slug, n)
		}
		if _, taken := s.Ticket(id); !taken {
			return id
		}
	}
}
