package read

import (
	"bytes"
	"encoding/binary"
)

// sniffLen is how many bytes of a file decide what it is.
const sniffLen = 4100

// The image types that are shown.
const (
	mimeJPEG = "image/jpeg"
	mimePNG  = "image/png"
	mimeGIF  = "image/gif"
	mimeWebP = "image/webp"
	mimeBMP  = "image/bmp"
)

var pngSignature = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR") // with the start of the header chunk, 13 bytes long

// sniff tells the type of an image from its first bytes, whatever its name is; size is that of the file. It
// returns the empty string for everything else.
func sniff(head []byte, size int64) string {
	switch {
	case bytes.HasPrefix(head, []byte{0xFF, 0xD8, 0xFF}):
		if len(head) > 3 && head[3] == 0xF7 {
			return "" // JPEG-LS, which nothing shows
		}
		return mimeJPEG
	case bytes.HasPrefix(head, pngSignature):
		return mimePNG
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return mimeGIF
	case len(head) >= 12 && bytes.HasPrefix(head, []byte("RIFF")) && string(head[8:12]) == "WEBP":
		return mimeWebP
	case isBMP(head, size):
		return mimeBMP
	}
	return ""
}

// isBMP looks for a plausible header, since two letters are a usual start of a text.
func isBMP(head []byte, size int64) bool {
	if len(head) < 26 || head[0] != 'B' || head[1] != 'M' {
		return false
	}
	declared, pixels, header := binary.LittleEndian.Uint32(head[2:]), binary.LittleEndian.Uint32(head[10:]), binary.LittleEndian.Uint32(head[14:])
	if declared != 0 {
		if declared < 26 {
			return false
		}
		size = int64(declared)
	}
	if int64(pixels) < 14+int64(header) || int64(pixels) >= size {
		return false
	}
	at := 26
	if header == 12 {
		at = 22
	} else if header < 40 || header > 124 || len(head) < 30 {
		return false
	}
	planes, bits := binary.LittleEndian.Uint16(head[at:]), binary.LittleEndian.Uint16(head[at+2:])
	switch bits {
	case 1, 4, 8, 16, 24, 32:
		return planes == 1
	}
	return false
}
