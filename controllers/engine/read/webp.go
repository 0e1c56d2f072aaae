package read

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"io"

	"golang.org/x/image/webp"
)

func decodeWebPConfig(r io.Reader) (image.Config, error) { return webp.DecodeConfig(r) }

// decodeWebP decodes a still picture, or the first frame of a moving one in its place on the canvas, which the
// library does not know about.
func decodeWebP(r io.Reader) (image.Image, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	frame, moving := webpChunk(data, "ANMF")
	if !moving {
		return webp.Decode(bytes.NewReader(data))
	}
	canvas, err := webp.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	still, at, err := firstFrame(frame)
	if err != nil {
		return nil, err
	}
	cfg, err := webp.DecodeConfig(bytes.NewReader(still))
	if err != nil {
		return nil, err
	}
	if at.X+cfg.Width > canvas.Width || at.Y+cfg.Height > canvas.Height {
		return nil, errors.New("webp: frame outside the canvas")
	}
	img, err := webp.Decode(bytes.NewReader(still))
	if err != nil {
		return nil, err
	}
	return placed{img, at}, nil
}

// placed is an image with its upper left corner elsewhere.
type placed struct {
	image.Image
	at image.Point
}

// Bounds returns where the image lies.
func (p placed) Bounds() image.Rectangle { return p.Image.Bounds().Add(p.at) }

// At returns the colour of a pixel of the canvas.
func (p placed) At(x, y int) color.Color { return p.Image.At(x-p.at.X, y-p.at.Y) }

// webpChunk returns the content of the first chunk of that name.
func webpChunk(data []byte, name string) ([]byte, bool) {
	for rest := data[min(12, len(data)):]; len(rest) >= 8; {
		length := int64(binary.LittleEndian.Uint32(rest[4:]))
		body := rest[8:]
		if string(rest[:4]) == name {
			return body[:min(length, int64(len(body)))], true
		}
		rest = body[min(length+length%2, int64(len(body))):]
	}
	return nil, false
}

// firstFrame makes a picture of its own out of the content of a frame chunk, and says where it belongs.
func firstFrame(frame []byte) (still []byte, at image.Point, err error) {
	const header = 16
	if len(frame) < header+8 {
		return nil, at, errors.New("webp: frame without data")
	}
	uint24 := func(i int) int { return int(frame[i]) | int(frame[i+1])<<8 | int(frame[i+2])<<16 }
	at = image.Pt(2*uint24(0), 2*uint24(3))
	extended := make([]byte, 10) // flags, three bytes reserved, then the frame's size as it stands in the frame
	if chunks := frame[header:]; string(chunks[:4]) == "ALPH" {
		extended[0] = 1 << 4
	}
	copy(extended[4:], frame[6:12])
	var b bytes.Buffer
	b.WriteString("RIFF")
	put := func(n int) { b.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	put(4 + 8 + len(extended) + len(frame) - header)
	b.WriteString("WEBPVP8X")
	put(len(extended))
	b.Write(extended)
	b.Write(frame[header:])
	return b.Bytes(), at, nil
}
