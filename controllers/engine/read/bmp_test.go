package read

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"testing"

	"golang.org/x/image/bmp"
)

// bmpFile puts a BMP file together; header is what follows its own length.
func bmpFile(header, between, pixels []byte) []byte {
	start := 14 + 4 + len(header) + len(between)
	b := binary.LittleEndian.AppendUint32([]byte("BM"), uint32(start+len(pixels)))
	b = binary.LittleEndian.AppendUint32(append(b, 0, 0, 0, 0), uint32(start))
	b = binary.LittleEndian.AppendUint32(b, uint32(4+len(header)))
	return bytes.Join([][]byte{b, header, between, pixels}, nil)
}

// info is the usual header without its length, of 40 bytes or more.
func info(w, h int32, bits uint16, method uint32, colours uint32, more ...uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(w))
	b = binary.LittleEndian.AppendUint32(b, uint32(h))
	b = binary.LittleEndian.AppendUint16(append(b, 1, 0), bits)
	for _, v := range append([]uint32{method, 0, 0, 0, colours, 0}, more...) {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

var (
	red   = color.NRGBA{R: 255, A: 255}
	green = color.NRGBA{G: 255, A: 255}
	blue  = color.NRGBA{B: 255, A: 255}
	white = color.NRGBA{R: 255, G: 255, B: 255, A: 255}
)

func TestBMPOfOtherPrograms(t *testing.T) {
	palette4 := []byte{0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 255, 255, 255, 0}
	palette3 := []byte{0, 0, 255, 0, 255, 0}
	square := []color.NRGBA{red, green, blue, white} // upper row, lower row
	for name, c := range map[string]struct {
		file []byte
		want []color.NRGBA
	}{
		"24 bits": {bmpFile(info(2, 2, 24, 0, 0), nil, []byte{255, 0, 0, 255, 255, 255, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0}), square},
		"24 bits, top down, a gap before the pixels": {bmpFile(info(2, -2, 24, 0, 0), []byte("gap!"),
			[]byte{0, 0, 255, 0, 255, 0, 0, 0, 255, 0, 0, 255, 255, 255, 0, 0}), square},
		"old header, one bit": {bmpFile([]byte{2, 0, 2, 0, 1, 0, 1, 0}, palette3, []byte{0x40, 0, 0, 0, 0x80, 0, 0, 0}),
			[]color.NRGBA{green, red, red, green}},
		"old header, 24 bits": {bmpFile([]byte{1, 0, 1, 0, 1, 0, 24, 0}, nil, []byte{0, 255, 0, 0}), []color.NRGBA{green}},
		"2 bits":              {bmpFile(info(2, 2, 2, 0, 4), palette4, []byte{0xB0, 0, 0, 0, 0x10, 0, 0, 0}), square},
		"4 bits":              {bmpFile(info(2, 2, 4, 0, 4), palette4, []byte{0x23, 0, 0, 0, 0x01, 0, 0, 0}), square},
		"8 bits":              {bmpFile(info(2, 2, 8, 0, 4), palette4, []byte{2, 3, 0, 0, 0, 1, 0, 0}), square},
		"16 bits":             {bmpFile(info(2, 2, 16, 0, 0), nil, []byte{0x1F, 0, 0xFF, 0x7F, 0, 0x7C, 0xE0, 3}), square},
		"16 bits with masks behind the header": {bmpFile(info(2, 2, 16, 3, 0), []byte{0, 0xF8, 0, 0, 0xE0, 7, 0, 0, 0x1F, 0, 0, 0},
			[]byte{0x1F, 0, 0xFF, 0xFF, 0, 0xF8, 0xE0, 7}), square},
		"32 bits without alpha": {bmpFile(info(2, 2, 32, 0, 0), nil, []byte{255, 0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 0, 0, 255, 0, 0}), square},
		"32 bits, masks the other way round": {bmpFile(info(2, 2, 32, 3, 0), []byte{255, 0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 0},
			[]byte{0, 0, 255, 9, 255, 255, 255, 9, 255, 0, 0, 9, 0, 255, 0, 9}), square},
		"32 bits with alpha": {bmpFile(info(2, 1, 32, 3, 0, 0xFF0000, 0xFF00, 0xFF, 0xFF000000), nil, []byte{0, 0, 255, 128, 0, 255, 0, 255}),
			[]color.NRGBA{{R: 255, A: 128}, green}},
		"32 bits, alpha never set": {bmpFile(info(2, 1, 32, 3, 0, 0xFF0000, 0xFF00, 0xFF, 0xFF000000), nil, []byte{0, 0, 255, 0, 0, 255, 0, 0}),
			[]color.NRGBA{red, green}},
		"runs of 8 bits": {bmpFile(info(2, 2, 8, 1, 4), palette4, []byte{1, 2, 1, 3, 0, 0, 2, 0, 0, 2, 0xFF, 0, 0, 1}),
			[]color.NRGBA{red, red, blue, white}},
		"runs of 8 bits, as they are": {bmpFile(info(3, 1, 8, 1, 4), palette4, []byte{0, 3, 2, 1, 0, 0, 0, 1}), []color.NRGBA{blue, green, red}},
		"runs of 4 bits": {bmpFile(info(3, 2, 4, 2, 4), palette4, []byte{3, 0x12, 0, 0, 0, 3, 0x20, 0x10, 0, 1}),
			[]color.NRGBA{blue, red, green, green, blue, green}},
		"runs that move": {bmpFile(info(3, 2, 8, 1, 4), palette4, []byte{0, 2, 1, 1, 1, 3, 0, 1}), []color.NRGBA{red, white, red, red, red, red}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sniff(c.file, int64(len(c.file))); got != mimeBMP && name != "2 bits" {
				t.Errorf("taken for %q", got)
			}
			img, err := decodeBMP(bytes.NewReader(c.file))
			if err != nil {
				t.Fatal(err)
			}
			w := img.Bounds().Dx()
			for i, want := range c.want {
				if got := img.At(i%w, i/w); got != want {
					t.Errorf("pixel %d,%d is %v, want %v", i%w, i/w, got, want)
				}
			}
			if w*img.Bounds().Dy() != len(c.want) {
				t.Errorf("%v, want %d pixels", img.Bounds(), len(c.want))
			}
		})
	}
}

// TestBMPLikeTheLibrary compares where the library can decode.
func TestBMPLikeTheLibrary(t *testing.T) {
	translucent := image.NewNRGBA(image.Rect(0, 0, 5, 3))
	for i := range translucent.Pix {
		translucent.Pix[i] = uint8(i * 37)
	}
	paletted := image.NewPaletted(image.Rect(0, 0, 5, 3), color.Palette{red, green, blue})
	copy(paletted.Pix, []byte{0, 1, 2, 1, 0, 2, 2, 1})
	for _, img := range []image.Image{quarters(7, 5), translucent, paletted, image.NewGray(image.Rect(0, 0, 3, 3))} {
		data := encoded(t, img, mimeBMP)
		want, err := bmp.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeBMP(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for y := range want.Bounds().Dy() {
			for x := range want.Bounds().Dx() {
				if g, w := color.NRGBAModel.Convert(got.At(x, y)), color.NRGBAModel.Convert(want.At(x, y)); g != w {
					t.Errorf("%T at %d,%d: %v, want %v", img, x, y, g, w)
				}
			}
		}
	}
}

func TestBMPRefused(t *testing.T) {
	for name, file := range map[string][]byte{
		"short":              []byte("BM"),
		"no pixels":          bmpFile(info(2, 2, 24, 0, 0), nil, nil),
		"too few pixels":     bmpFile(info(2, 2, 24, 0, 0), nil, make([]byte, 15)),
		"nothing wide":       bmpFile(info(0, 2, 24, 0, 0), nil, make([]byte, 16)),
		"negative width":     bmpFile(info(-2, 2, 24, 0, 0), nil, make([]byte, 16)),
		"lowest height":      bmpFile(info(2, -1<<31, 24, 0, 0), nil, make([]byte, 16)),
		"three bits":         bmpFile(info(2, 2, 3, 0, 0), nil, make([]byte, 16)),
		"a JPEG inside":      bmpFile(info(2, 2, 24, 4, 0), nil, make([]byte, 16)),
		"colour unknown":     bmpFile(info(2, 1, 8, 0, 1), []byte{0, 0, 255, 0}, []byte{0, 1, 0, 0}),
		"runs end too early": bmpFile(info(2, 2, 8, 1, 1), []byte{0, 0, 255, 0}, []byte{0, 9, 1}),
		"huge runs":          bmpFile(info(1<<20, 1<<20, 8, 1, 1), []byte{0, 0, 255, 0}, []byte{0, 1}),
	} {
		if img, err := decodeBMP(bytes.NewReader(file)); err == nil {
			t.Errorf("%s: decoded to %v", name, img.Bounds())
		}
	}
}
