package scope

import (
	"context"

	"github.com/loophost/loophost/host/store"
)

// Listed is one scope of a list.
type Listed struct {
	ID   string
	Head Head
	Mark store.Mark
	Err  error // why Head can't be read; nil: it is whole
}

// Page is one page of List. Next is "" on the last page.
type Page struct {
	Items []Listed
	Next  string
}

// List lists scopes in the store's order, from cursor ("": the start) on. limit 0 is 100.
func List(ctx context.Context, st store.Store, cursor string, limit int) (Page, error) {
	page, err := st.List(ctx, store.Query{Kind: store.KindScope, Cursor: cursor, Limit: limit})
	if err != nil {
		return Page{}, err
	}
	out := Page{Next: page.Next}
	for _, item := range page.Items {
		l := Listed{ID: item.Record.Key.ID, Mark: item.Record.Mark, Err: item.Err}
		if l.Err == nil {
			l.Head, l.Err = DecodeHead(item.Record.Head)
			l.Err = withKey(l.ID, l.Err)
		}
		out.Items = append(out.Items, l)
	}
	return out, nil
}
