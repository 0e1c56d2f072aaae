package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Schema is the small part of JSON Schema 2020-12 that the definitions use.
// Anything that some host refuses ($ref, $defs, anyOf, null) is absent on
// purpose.
type Schema struct {
	// Type is a JSON Schema type name; empty in an output schema lets any
	// value through, null included.
	Type string `json:"type,omitempty"`
	// Description tells what the value means, with its unit and base.
	Description string `json:"description,omitempty"`
	// Enum lists the accepted strings.
	Enum []string `json:"enum,omitempty"`
	// Default is filled in when the property is absent.
	Default any `json:"default,omitempty"`
	// Minimum and Maximum bound a number, inclusive.
	Minimum *int `json:"minimum,omitempty"`
	Maximum *int `json:"maximum,omitempty"`
	// MinLength and MaxLength bound a string, in code points.
	MinLength *int `json:"minLength,omitempty"`
	MaxLength *int `json:"maxLength,omitempty"`
	// MinItems and MaxItems bound an array.
	MinItems *int `json:"minItems,omitempty"`
	MaxItems *int `json:"maxItems,omitempty"`
	// Items describes the elements of an array.
	Items *Schema `json:"items,omitempty"`
	// Properties are those of an object, in the order in which they are shown.
	Properties Properties `json:"properties,omitzero"`
	// Required names the properties that must be present.
	Required []string `json:"required,omitempty"`
	// AdditionalProperties is false on every input object.
	AdditionalProperties *bool `json:"additionalProperties,omitempty"`
}

// Property is a named schema inside an object.
type Property struct {
	Name   string
	Schema Schema
}

// Properties keeps its order when it is written as a JSON object. Nil is
// "no properties at all", which is left out; empty is written as {}.
type Properties []Property

// MarshalJSON writes the properties as one object in their order.
func (p Properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, prop := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(prop.Name)
		if err != nil {
			return nil, fmt.Errorf("encode property name %q: %w", prop.Name, err)
		}
		schema, err := json.Marshal(prop.Schema)
		if err != nil {
			return nil, fmt.Errorf("encode property %q: %w", prop.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(schema)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Lookup returns the schema of the named property.
func (p Properties) Lookup(name string) (Schema, bool) {
	for _, prop := range p {
		if prop.Name == name {
			return prop.Schema, true
		}
	}
	return Schema{}, false
}

// Names lists the property names in order.
func (p Properties) Names() []string {
	names := make([]string, len(p))
	for i, prop := range p {
		names[i] = prop.Name
	}
	return names
}

// arguments makes the schema of an input object: closed, with the listed
// properties, those marked by required being mandatory.
func arguments(fields ...field) Schema {
	closed := false
	s := Schema{Type: "object", Properties: Properties{}, AdditionalProperties: &closed}
	for _, f := range fields {
		s.Properties = append(s.Properties, f.Property)
		if f.mandatory {
			s.Required = append(s.Required, f.Name)
		}
	}
	return s
}

// result makes the schema of an output object; see the package's decision on
// why only `output` is required and the object stays open. The fields that the
// model cannot do without are described; ids it knows already and the working
// directory come too, but are left out of the schema to keep the list short.
func result(fields ...field) Schema {
	s := Schema{Type: "object", Properties: Properties{}, Required: []string{"output"}}
	for _, f := range fields {
		s.Properties = append(s.Properties, f.Property)
	}
	s.Properties = append(s.Properties, Property{"output", Schema{Type: "string", Description: "Text"}})
	return s
}

// field is a property and whether its object demands it.
type field struct {
	Property
	mandatory bool
}

func required(name string, s Schema) field { return field{Property{name, s}, true} }
func optional(name string, s Schema) field { return field{Property{name, s}, false} }

// text is a string of at least one character and at most max code points; max
// 0 leaves the upper end open.
func text(max int, description string) Schema {
	one := 1
	s := Schema{Type: "string", Description: description, MinLength: &one}
	if max > 0 {
		s.MaxLength = &max
	}
	return s
}

// integer is a whole number between the bounds.
func integer(min, max int, description string) Schema {
	return Schema{Type: "integer", Description: description, Minimum: &min, Maximum: &max}
}

// from is a whole number with no upper bound of its own.
func from(min int, description string) Schema {
	return Schema{Type: "integer", Description: description, Minimum: &min}
}

// number is any number between the bounds.
func number(min, max int, description string) Schema {
	return Schema{Type: "number", Description: description, Minimum: &min, Maximum: &max}
}

func toggle(description string) Schema {
	return Schema{Type: "boolean", Description: description, Default: false}
}

// with returns s with a default.
func (s Schema) with(value any) Schema {
	s.Default = value
	return s
}

// Shared fields of outputs: a plain value of a type with a description.
func returns(name, kind, description string) field {
	return optional(name, Schema{Type: kind, Description: description})
}

func workspaceArgument() field {
	return required("workspace_id", text(0, "From workspace_open"))
}

func keyArgument() field {
	return required("request_key", text(200, "Unique name of this call, e.g. fix-1; reuse only to retry"))
}

// operationArguments are the two ways to name an operation.
func operationArguments() []field {
	return []field{
		optional("operation_id", text(0, "From a result; or give request_key")),
		optional("request_key", text(200, "Key of the call; or give operation_id")),
	}
}
