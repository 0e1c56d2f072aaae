// Package service renders what has the system start the daemon: a systemd user unit, or a launchd agent.
//
// The templates say why each option is there. Every value is escaped for the format it goes into, so that it
// arrives as it was given; a value that a format cannot carry is refused with an error that says what to do.
// rig-bridge service writes the result; rig-bridge.service in this folder is the unit of packages.
package service
