package service

import (
	"bytes"
	_ "embed" // the templates
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"
)

// Unit is the name of the systemd unit.
const Unit = "rig-bridge.service"

// Label is the name of the launchd agent.
const Label = "dev.rigbridge.rig-bridge"

// Marker is the first line of a unit that rig-bridge service has written and may replace or remove.
const Marker = "# Managed by rig-bridge service."

var (
	//go:embed rig-bridge.service.tmpl
	unitText string
	//go:embed dev.rigbridge.rig-bridge.plist.tmpl
	agentText string

	unitTemplate  = template.Must(template.New(Unit).Parse(unitText))
	agentTemplate = template.Must(template.New(Label).Parse(agentText))
)

// Variable is one environment variable.
type Variable struct{ Name, Value string }

// Service is what there is to say about a service. Nothing is escaped in it.
type Service struct {
	// Program is the absolute path of rig-bridge.
	Program string
	// Args are its arguments.
	Args []string
	// Variables are its environment, besides what the system sets.
	Variables []Variable
	// Umask is what commands start with, as in "0022"; empty leaves it to the system.
	Umask string
	// Managed adds the marker.
	Managed bool
	// Home and LogFile are absolute; only launchd needs them.
	Home, LogFile string
}

// Systemd renders the user unit.
func (s Service) Systemd() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if strings.ContainsAny(s.Program, `"'\`) {
		return nil, fmt.Errorf("systemd starts no program with a quote or a backslash in its path, as in %s: install rig-bridge in another directory", s.Program)
	}
	view := struct {
		Managed, ExecStart, Umask string
		Environment               []string
	}{ExecStart: quoted(s.Program), Umask: s.Umask} // variables are not expanded in the path of the program
	if s.Managed {
		view.Managed = Marker
	}
	for _, arg := range s.Args {
		view.ExecStart += " " + strings.ReplaceAll(quoted(arg), "$", "$$")
	}
	for _, v := range s.Variables {
		view.Environment = append(view.Environment, quoted(v.Name+"="+v.Value))
	}
	return render(unitTemplate, view)
}

// Launchd renders the agent's property list.
func (s Service) Launchd() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	view := Service{Umask: s.Umask, Home: escapedXML(s.Home), LogFile: escapedXML(s.LogFile)}
	words := []string{escapedXML(s.Program)}
	for _, arg := range s.Args {
		words = append(words, escapedXML(arg))
	}
	for _, v := range s.Variables {
		view.Variables = append(view.Variables, Variable{Name: escapedXML(v.Name), Value: escapedXML(v.Value)})
	}
	return render(agentTemplate, struct {
		Service
		Words []string
	}{view, words})
}

func render(t *template.Template, view any) ([]byte, error) {
	var out bytes.Buffer
	if err := t.Execute(&out, view); err != nil {
		return nil, fmt.Errorf("render %s: %w", t.Name(), err)
	}
	return out.Bytes(), nil
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@:/.,+=-]+$`)

// quoted is a value as one word of a unit file. Control characters and invalid UTF-8 were refused before.
func quoted(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(value) + `"`
}

func escapedXML(value string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(value)) // a Builder takes everything
	return out.String()
}

// check refuses what no line of a unit and no XML can carry.
func (s Service) check() error {
	if !filepath.IsAbs(s.Program) {
		return fmt.Errorf("the path of the program must be absolute, it is %q", s.Program)
	}
	err := carries("the path of the program", s.Program)
	for _, arg := range s.Args {
		err = errors.Join(err, carries("an argument", arg))
	}
	for _, v := range s.Variables {
		err = errors.Join(err, carries("the variable "+v.Name, v.Value))
	}
	return errors.Join(err, carries("the home directory", s.Home), carries("the log file", s.LogFile))
}

func carries(what, value string) error {
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return fmt.Errorf("%s holds a line break or another control character, which a service cannot carry: %q", what, value)
	}
	return nil
}
