package read

import (
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"io"
	"math/bits"
)

// The library golang.org/x/image/bmp takes only files as it would write them itself. This decoder takes what
// other programs write: old headers, 16 bits, colour masks, run lengths, gaps between header and pixels.

var errBMP = errors.New("bmp: not a valid picture")

// The ways in which the pixels of a BMP file are kept.
const (
	bmpPlain     = 0
	bmpRuns8     = 1
	bmpRuns4     = 2
	bmpMasks     = 3
	bmpMasksRGBA = 6
)

// bitmap is a BMP file with its header read.
type bitmap struct {
	width, height int
	topDown       bool
	bits          int
	method        uint32
	palette       []color.NRGBA
	red, green    uint32 // masks of the channels, for 16 and 32 bits
	blue, alpha   uint32
	pixels        []byte
}

func decodeBMPConfig(r io.Reader) (image.Config, error) {
	b, err := parseBMP(r)
	if err != nil {
		return image.Config{}, err
	}
	return image.Config{ColorModel: color.NRGBAModel, Width: b.width, Height: b.height}, nil
}

func decodeBMP(r io.Reader) (image.Image, error) {
	b, err := parseBMP(r)
	if err != nil {
		return nil, err
	}
	if b.method == bmpRuns8 || b.method == bmpRuns4 {
		if err := b.unpack(); err != nil {
			return nil, err
		}
	}
	img := image.NewNRGBA(image.Rect(0, 0, b.width, b.height))
	stride, seen := b.stride(), b.alpha == 0
	for y := range b.height {
		row := b.pixels[y*stride : (y+1)*stride]
		to := y
		if !b.topDown {
			to = b.height - 1 - y
		}
		for x := range b.width {
			c, ok := b.at(row, x)
			if !ok {
				return nil, errBMP
			}
			seen = seen || c.A != 0
			img.SetNRGBA(x, to, c)
		}
	}
	if !seen { // alpha is declared but was left at nothing, as some screenshot programs do
		for i := 3; i < len(img.Pix); i += 4 {
			img.Pix[i] = 0xFF
		}
	}
	return img, nil
}

// stride is the number of bytes from one row to the next; rows are padded to four.
func (b *bitmap) stride() int { return (b.width*b.bits + 31) / 32 * 4 }

// parseBMP reads the header and checks that the pixels are all there.
func parseBMP(r io.Reader) (*bitmap, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(data) < 26 {
		return nil, errBMP
	}
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(data[at:])) }
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	start, header := u32(10), u32(14)
	b := &bitmap{}
	colours, paletteAt, entry := 0, 26, 3
	if header == 12 {
		b.width, b.height, b.bits = u16(18), u16(20), u16(24)
	} else {
		if header < 40 || header > 124 || len(data) < 14+int(header) {
			return nil, errBMP
		}
		b.width, b.height, b.bits, b.method = int(int32(u32(18))), int(int32(u32(22))), u16(28), u32(30)
		if b.height < 0 {
			b.height, b.topDown = -b.height, true
		}
		colours, paletteAt, entry = int(min(u32(46), 256)), 14+int(header), 4
		paletteAt += b.readMasks(data, int(header))
	}
	if b.bits <= 8 && colours == 0 {
		colours = 1 << b.bits
	}
	if b.bits <= 8 {
		for at := paletteAt; len(b.palette) < colours && at+3 <= min(len(data), int(start)); at += entry {
			b.palette = append(b.palette, color.NRGBA{R: data[at+2], G: data[at+1], B: data[at], A: 0xFF})
		}
	}
	if int64(start) > int64(len(data)) {
		return nil, errBMP
	}
	b.pixels = data[start:]
	return b, b.check()
}

// readMasks sets the channel masks and returns the number of bytes that they take behind the header.
func (b *bitmap) readMasks(data []byte, header int) int {
	b.red, b.green, b.blue = 0xFF0000, 0xFF00, 0xFF
	if b.bits == 16 {
		b.red, b.green, b.blue = 0x7C00, 0x3E0, 0x1F
	}
	mask := func(i int) uint32 {
		if at := 54 + 4*i; at+4 <= len(data) {
			return binary.LittleEndian.Uint32(data[at:])
		}
		return 0
	}
	if header >= 56 && b.bits >= 16 {
		b.alpha = mask(3)
	}
	if b.method != bmpMasks && b.method != bmpMasksRGBA {
		return 0
	}
	b.red, b.green, b.blue = mask(0), mask(1), mask(2)
	if b.method == bmpMasksRGBA {
		b.alpha = mask(3)
	}
	switch {
	case header >= 52:
		return 0
	case b.method == bmpMasksRGBA:
		return 16
	}
	return 12
}

// check refuses what cannot be decoded.
func (b *bitmap) check() error {
	if b.width <= 0 || b.height <= 0 || b.width > maxDecoded || b.height > maxDecoded {
		return errBMP
	}
	switch {
	case b.method == bmpPlain && (b.bits == 1 || b.bits == 2 || b.bits == 4 || b.bits == 8 || b.bits == 16 || b.bits == 24 || b.bits == 32):
	case (b.method == bmpMasks || b.method == bmpMasksRGBA) && (b.bits == 16 || b.bits == 32):
	case b.method == bmpRuns8 && b.bits == 8, b.method == bmpRuns4 && b.bits == 4:
		return nil
	default:
		return errBMP
	}
	if int64(b.stride())*int64(b.height) > int64(len(b.pixels)) {
		return errBMP
	}
	return nil
}

// at returns one pixel of a row; ok is false if its colour is not in the palette.
func (b *bitmap) at(row []byte, x int) (c color.NRGBA, ok bool) {
	switch b.bits {
	case 16:
		return b.masked(uint32(binary.LittleEndian.Uint16(row[2*x:]))), true
	case 24:
		return color.NRGBA{R: row[3*x+2], G: row[3*x+1], B: row[3*x], A: 0xFF}, true
	case 32:
		return b.masked(binary.LittleEndian.Uint32(row[4*x:])), true
	}
	bit := x * b.bits
	i := int(row[bit/8]>>(8-b.bits-bit%8)) & (1<<b.bits - 1)
	if i >= len(b.palette) {
		return c, false
	}
	return b.palette[i], true
}

func (b *bitmap) masked(v uint32) color.NRGBA {
	c := color.NRGBA{R: channel(v, b.red), G: channel(v, b.green), B: channel(v, b.blue), A: 0xFF}
	if b.alpha != 0 {
		c.A = channel(v, b.alpha)
	}
	return c
}

// channel takes the bits of a mask and widens or narrows them to eight.
func channel(v, mask uint32) uint8 {
	if mask == 0 {
		return 0
	}
	shift := bits.TrailingZeros32(mask)
	most := uint64(mask >> shift)
	return uint8((uint64((v&mask)>>shift)*255 + most/2) / most)
}

// unpack replaces pixels kept as run lengths by plain ones, 8 bits each. What the runs leave out has the first
// colour.
func (b *bitmap) unpack() error {
	if int64(b.width)*int64(b.height) > maxDecoded {
		return errBMP
	}
	four := b.method == bmpRuns4
	b.bits = 8
	stride := b.stride()
	plain := make([]byte, stride*b.height)
	x, y := 0, 0
	put := func(i byte) {
		if x < b.width && y < b.height {
			plain[y*stride+x] = i
		}
		x++
	}
	half := func(v byte, odd bool) byte { // the pixel of a byte that holds two
		switch {
		case !four:
			return v
		case odd:
			return v & 0xF
		}
		return v >> 4
	}
	for in := b.pixels; len(in) >= 2 && y < b.height; {
		count, v := int(in[0]), in[1]
		in = in[2:]
		if count > 0 {
			for i := range count {
				put(half(v, i%2 == 1))
			}
			continue
		}
		switch v {
		case 0: // end of the row
			x, y = 0, y+1
		case 1: // end of the picture
			in = nil
		case 2: // move
			if len(in) < 2 {
				return errBMP
			}
			x, y, in = x+int(in[0]), y+int(in[1]), in[2:]
		default: // so many pixels as they are, padded to two bytes
			size := int(v)
			if four {
				size = (size + 1) / 2
			}
			if len(in) < size {
				return errBMP
			}
			for i := range int(v) {
				at := i
				if four {
					at = i / 2
				}
				put(half(in[at], i%2 == 1))
			}
			in = in[min(size+size%2, len(in)):]
		}
	}
	b.pixels, b.method = plain, bmpPlain
	return nil
}
