// Package handoff notes when a handoff was read, and where its notification stands.
//
// A handoff is read when its spec.acknowledged is set, by whom ever; the first time is kept. Desktop
// notifications are not part of this version: delivery is Disabled for every handoff, whatever its project's
// setting.
package handoff
