package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/loophost/loophost/pluginapi"
)

// generate makes every schema. Names, types and which fields are required come
// from the types, descriptions and enumerations from their source.
func generate(source string) (map[string][]byte, error) {
	from, err := read(source)
	if err != nil {
		return nil, err
	}
	pkg := reflect.TypeFor[pluginapi.Manifest]().PkgPath()
	r := &jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, Mapper: mapper(pkg, from.words), CommentMap: map[string]string{}}
	for name, comment := range from.comments {
		r.CommentMap[pkg+"."+name] = comment
	}
	out := map[string][]byte{}
	for name, t := range documents {
		s := r.ReflectFromType(t)
		s.Title = t.Name()
		s.Description = from.comments[t.Name()]
		if err := refine(s, t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := addAliases(s, from.aliases); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = b.Bytes()
	}
	return out, nil
}

// mapper describes the types that the library can't know enough about.
func mapper(pkg string, words map[string][]any) func(reflect.Type) *jsonschema.Schema {
	return func(t reflect.Type) *jsonschema.Schema {
		if t == reflect.TypeFor[pluginapi.Raw]() {
			return &jsonschema.Schema{Type: "object"}
		}
		if list := words[t.Name()]; list != nil && t.PkgPath() == pkg {
			return &jsonschema.Schema{Type: "string", Enum: list}
		}
		switch t.Kind() {
		case reflect.Uint32:
			return &jsonschema.Schema{Type: "integer", Minimum: "0", Maximum: number(math.MaxUint32)}
		case reflect.Uint64:
			return &jsonschema.Schema{Type: "integer", Minimum: "0", Maximum: number(math.MaxUint64)}
		}
		return nil
	}
}

func number(v uint64) json.Number { return json.Number(strconv.FormatUint(v, 10)) }

// refine lets null stand where Go's encoder writes it, in the type's own schema
// and in those that it refers to.
func refine(s *jsonschema.Schema, t reflect.Type) error {
	if err := refineType(s, t); err != nil {
		return err
	}
	nested := structs(t)
	for name, def := range s.Definitions {
		i := slices.IndexFunc(nested, func(n reflect.Type) bool { return n.Name() == name })
		if i < 0 {
			return fmt.Errorf("definition %s belongs to no type", name)
		}
		if err := refineType(def, nested[i]); err != nil {
			return err
		}
	}
	return nil
}

func refineType(s *jsonschema.Schema, t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "omitempty" || !nullable(f.Type, t, name) {
			continue
		}
		field, ok := s.Properties.Get(name)
		if !ok {
			return fmt.Errorf("%s has no property %s", t.Name(), name)
		}
		description := field.Description
		field.Description = ""
		s.Properties.Set(name, &jsonschema.Schema{
			AnyOf: []*jsonschema.Schema{field, {Type: "null"}}, Description: description,
		})
	}
	return nil
}

// addAliases lets a manifest call hook points by their other names.
func addAliases(s *jsonschema.Schema, aliases []any) error {
	decl := s.Definitions[reflect.TypeFor[pluginapi.HookDecl]().Name()]
	if decl == nil {
		return nil
	}
	point, ok := decl.Properties.Get("point")
	if !ok || len(aliases) == 0 {
		return errors.New("a hook's point or the aliases of points were not found")
	}
	point.Enum = slices.Concat(point.Enum, aliases)
	return nil
}

// nullable: absent pointers and lists are written as null, and so is the
// document of a hook point that has none.
func nullable(field, t reflect.Type, name string) bool {
	if field == reflect.TypeFor[pluginapi.Raw]() {
		return t == reflect.TypeFor[pluginapi.HookInput]() && name == "document"
	}
	return field.Kind() == reflect.Pointer || field.Kind() == reflect.Slice
}

// structs are t and all structs in it.
func structs(t reflect.Type) []reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return structs(t.Elem())
	case reflect.Struct:
		list := []reflect.Type{t}
		for i := range t.NumField() {
			list = append(list, structs(t.Field(i).Type)...)
		}
		return list
	}
	return nil
}
