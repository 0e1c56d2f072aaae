package mcpserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// digest is the HMAC of a call's canonical arguments under the daemon's own key. A bare hash of a short command
// could be guessed. wait_seconds is left out: how long the caller waits is not part of what it asks for.
func digest(key []byte, tool string, arguments json.RawMessage) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &fields); err != nil {
		return "", err
	}
	delete(fields, "wait_seconds")
	canonical, err := json.Marshal(fields) // keys sorted
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(tool + "\x00"))
	mac.Write(canonical)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil)), nil
}
