package read

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	xdraw "golang.org/x/image/draw"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
)

// show reads content as a file.
func show(t *testing.T, content []byte) *engine.Result {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := Run(context.Background(), engine.Env{Cwd: dir}, Args{Path: "f"})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// only decodes the one picture of a result.
func only(t *testing.T, res *engine.Result) image.Image {
	t.Helper()
	if len(res.Images) != 1 {
		t.Fatalf("%d pictures with %q", len(res.Images), res.Text)
	}
	if !fits(res.Images[0].Data) {
		t.Errorf("picture of %d bytes is too large", len(res.Images[0].Data))
	}
	img, format, err := image.Decode(bytes.NewReader(res.Images[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	if res.Images[0].MIMEType != "image/"+format {
		t.Errorf("type %s, but it is %s", res.Images[0].MIMEType, format)
	}
	if !strings.HasPrefix(res.Text, "Read image file [image/"+format+"]") {
		t.Errorf("text %q for %s", res.Text, format)
	}
	return img
}

// quarters is a picture whose corners can be told apart.
func quarters(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{A: 255}
			if x < w/2 {
				c.R = 255
			}
			if y < h/2 {
				c.G = 255
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

// corner names the quarter that a colour comes from: top left, top right, bottom left, bottom right.
func corner(c color.Color) string {
	r, g, _, _ := c.RGBA()
	return map[bool]string{true: "top", false: "bottom"}[g > 0x8000] + " " + map[bool]string{true: "left", false: "right"}[r > 0x8000]
}

func encoded(t *testing.T, img image.Image, as string) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch as {
	case mimePNG:
		err = png.Encode(&b, img)
	case mimeJPEG:
		err = jpeg.Encode(&b, img, nil)
	case mimeGIF:
		err = gif.Encode(&b, img, nil)
	case mimeBMP:
		err = bmp.Encode(&b, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSniff(t *testing.T) {
	header := func(size, pixels, dib uint32, planes, bits uint16) string {
		b := binary.LittleEndian.AppendUint32([]byte("BM"), size)
		b = binary.LittleEndian.AppendUint32(append(b, 0, 0, 0, 0), pixels)
		b = binary.LittleEndian.AppendUint32(b, dib)
		if dib != 12 {
			b = append(b, 0, 0, 0, 0)
		}
		b = binary.LittleEndian.AppendUint16(append(b, 0, 0, 0, 0), planes)
		return string(binary.LittleEndian.AppendUint16(b, bits)) + strings.Repeat("\x00", 100)
	}
	for head, want := range map[string]string{
		"":                                  "",
		"plain text":                        "",
		"\xff\xd8\xff":                      mimeJPEG,
		"\xff\xd8\xff\xe0":                  mimeJPEG,
		"\xff\xd8\xff\xf7":                  "",
		"\xff\xd8":                          "",
		"\x89PNG\r\n\x1a\n":                 "",
		string(pngSignature):                mimePNG,
		"GIF":                               "",
		"GIF is a format":                   "",
		"GIF89a":                            mimeGIF,
		"GIF87a":                            mimeGIF,
		"RIFFxxxxWEBP":                      mimeWebP,
		"RIFFxxxxWAVE":                      "",
		header(200, 54, 40, 1, 24):          mimeBMP,
		header(0, 54, 40, 1, 24):            mimeBMP,
		header(25, 54, 40, 1, 24):           "",
		header(200, 53, 40, 1, 24):          "",
		header(54, 54, 40, 1, 24):           "",
		header(200, 26, 12, 1, 24):          mimeBMP,
		header(200, 25, 12, 1, 24):          "",
		header(200, 53, 39, 1, 24):          "",
		header(200, 138, 124, 1, 32):        mimeBMP,
		header(200, 139, 125, 1, 32):        "",
		header(200, 54, 40, 2, 24):          "",
		header(200, 54, 40, 1, 2):           "",
		header(0xFFFFFFFF, 1<<31, 40, 1, 1): mimeBMP,
	} {
		if got := sniff([]byte(head), int64(len(head))); got != want {
			t.Errorf("%.40q: got %q, want %q", head, got, want)
		}
	}
}

// TestTextThatBeginsLikeAnImage is readable, which it is not in the reference.
func TestTextThatBeginsLikeAnImage(t *testing.T) {
	for _, text := range []string{"GIF", "GIF is a format\n", "GIF89a is its second version\n", "BM\n", "RIFFxxxxWEBP is a container\n"} {
		if res := show(t, []byte(text)); res.Text != text || res.Images != nil {
			t.Errorf("%q: got %q", text, res.Text)
		}
	}
	for _, data := range []string{"GIF89a\x01\x00\x01\x00\x00\x00\x00", "GIF89a\xff\xff\xff"} {
		if res := show(t, []byte(data)); res.Text != "Read image file [image/gif]\n"+notResized || res.Images != nil {
			t.Errorf("%q: got %q", data, res.Text)
		}
	}
}

func TestPassedThrough(t *testing.T) {
	for _, as := range []string{mimePNG, mimeJPEG, mimeGIF} {
		data := encoded(t, quarters(2000, 40), as)
		res := show(t, data)
		if only(t, res); !bytes.Equal(res.Images[0].Data, data) || res.Text != "Read image file ["+as+"]" {
			t.Errorf("%s: not the same bytes, %q", as, res.Text)
		}
	}
	var b bytes.Buffer
	frame := image.NewPaletted(image.Rect(0, 0, 4, 4), color.Palette{color.Black, color.White})
	if err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{5, 5}}); err != nil {
		t.Fatal(err)
	}
	if res := show(t, b.Bytes()); !bytes.Equal(res.Images[0].Data, b.Bytes()) {
		t.Error("a moving GIF does not stay one")
	}
}

func TestConvertedBMP(t *testing.T) {
	res := show(t, encoded(t, quarters(6, 4), mimeBMP))
	if want := "Read image file [image/png]\n[Image converted from image/bmp to image/png.]"; res.Text != want {
		t.Errorf("got %q, want %q", res.Text, want)
	}
	if img := only(t, res); img.Bounds().Size() != image.Pt(6, 4) || corner(img.At(0, 3)) != "bottom left" {
		t.Errorf("another picture: %v, %s", img.Bounds(), corner(img.At(0, 3)))
	}
	broken := encoded(t, quarters(6, 4), mimeBMP)[:60]
	if res := show(t, broken); res.Text != "Read image file [image/bmp]\n"+notConverted {
		t.Errorf("broken: %q", res.Text)
	}
}

func TestScaledDown(t *testing.T) {
	for _, c := range []struct {
		w, h, toW, toH int
		factor         string
	}{
		{3000, 30, 2000, 20, "1.50"}, {30, 3000, 20, 2000, "1.50"}, {2001, 3, 2000, 3, "1.00"}, {1, 5000, 1, 2000, "1.00"},
	} {
		res := show(t, encoded(t, quarters(c.w, c.h), mimePNG))
		img := only(t, res)
		if img.Bounds().Size() != image.Pt(c.toW, c.toH) {
			t.Errorf("%dx%d became %v", c.w, c.h, img.Bounds().Size())
		}
		if !strings.Contains(res.Text, "displayed at") || !strings.Contains(res.Text, "Multiply coordinates by "+c.factor+" to") {
			t.Errorf("%dx%d: %q", c.w, c.h, res.Text)
		}
		if c.w > 1 && corner(img.At(0, 0)) != "top left" || corner(img.At(c.toW-1, c.toH-1)) != "bottom right" {
			t.Errorf("%dx%d: corners changed places", c.w, c.h)
		}
	}
}

func TestLimitSides(t *testing.T) {
	for from, to := range map[image.Point]image.Point{
		{2000, 2000}: {2000, 2000}, {2500, 2400}: {2000, 1920}, {2100, 4000}: {1050, 2000}, {4000, 4000}: {2000, 2000},
		{10000, 1}: {2000, 1}, {1, 10000}: {1, 2000}, {4000, 3}: {2000, 2}, {2001, 2001}: {2000, 2000},
	} {
		if got := limitSides(from); got != to {
			t.Errorf("%v: got %v, want %v", from, got, to)
		}
	}
}

// withOrientation puts an EXIF segment into a JPEG file.
func withOrientation(data []byte, o uint16, order binary.AppendByteOrder) []byte {
	tiff := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		tiff = []byte("MM\x00*")
	}
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 2)
	for _, tag := range [][2]uint16{{0x010F, 7}, {0x0112, o}} {
		tiff = order.AppendUint16(tiff, tag[0])
		tiff = order.AppendUint16(tiff, 3)
		tiff = order.AppendUint32(tiff, 1)
		tiff = order.AppendUint16(order.AppendUint16(tiff, tag[1]), 0)
	}
	segment := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xE1}, byte((len(segment)+2)>>8), byte(len(segment)+2))
	return append(append(out, segment...), data[2:]...)
}

func TestTurnedUpright(t *testing.T) {
	// What lies in the upper left corner after turning, for each orientation.
	want := map[uint16]string{0: "top left", 1: "top left", 2: "top right", 3: "bottom right", 4: "bottom left",
		5: "top left", 6: "bottom left", 7: "bottom right", 8: "top right", 9: "top left"}
	// And in the upper right one.
	right := map[uint16]string{0: "top right", 1: "top right", 2: "top left", 3: "bottom left", 4: "bottom right",
		5: "bottom left", 6: "top left", 7: "top right", 8: "bottom right", 9: "top right"}
	data := encoded(t, quarters(2200, 40), mimeJPEG)
	for o := uint16(0); o <= 9; o++ {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			img := only(t, show(t, withOrientation(data, o, order)))
			size := image.Pt(2000, 36)
			if o >= 5 && o <= 8 {
				size = image.Pt(36, 2000)
			}
			if img.Bounds().Size() != size {
				t.Errorf("orientation %d: %v, want %v", o, img.Bounds().Size(), size)
			}
			if got := corner(img.At(2, 2)); got != want[o] {
				t.Errorf("orientation %d: %s came to the upper left, want %s", o, got, want[o])
			}
			if got := corner(img.At(size.X-3, 2)); got != right[o] {
				t.Errorf("orientation %d: %s came to the upper right, want %s", o, got, right[o])
			}
		}
	}
}

// TestTooManyBytes has a picture that no lossless encoding makes small enough.
func TestTooManyBytes(t *testing.T) {
	noise := image.NewNRGBA(image.Rect(0, 0, 1000, 950))
	rng := rand.NewChaCha8([32]byte{1})
	if _, err := rng.Read(noise.Pix); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, noise); err != nil {
		t.Fatal(err)
	}
	res := show(t, b.Bytes())
	img := only(t, res)
	if res.Images[0].MIMEType != mimeJPEG || img.Bounds().Size() != image.Pt(1000, 950) {
		t.Errorf("%s, %v", res.Images[0].MIMEType, img.Bounds())
	}
	if !strings.HasSuffix(res.Text, "[Image: original 1000x950, displayed at 1000x950. Multiply coordinates by 1.00 to map to original image.]") {
		t.Errorf("got %q", res.Text)
	}
}

func TestTransparencyOnWhite(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	img.SetNRGBA(0, 0, color.NRGBA{R: 9, A: 0})
	img.SetNRGBA(1, 0, color.NRGBA{A: 255})
	flat := flatten(img)
	if r, g, b, a := flat.At(0, 0).RGBA(); r&g&b&a != 0xFFFF {
		t.Error("a transparent pixel is not white")
	}
	if r, _, _, _ := flat.At(1, 0).RGBA(); r != 0 {
		t.Error("an opaque pixel changed")
	}
}

// TestAbsurdSize gives a header that promises more pixels than there is memory for.
func TestAbsurdSize(t *testing.T) {
	data := encoded(t, quarters(4, 4), mimePNG)
	binary.BigEndian.PutUint32(data[16:], 60_000)
	binary.BigEndian.PutUint32(data[20:], 60_000)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := show(t, data)
	runtime.ReadMemStats(&after)
	if res.Text != "Read image file [image/png]\n"+notResized || res.Images != nil {
		t.Errorf("got %q", res.Text)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("allocated %d bytes", used)
	}
}

// TestDecodeBudget has a reader wait for memory and give up when it is cancelled.
func TestDecodeBudget(t *testing.T) {
	if err := decodeBudget.Acquire(context.Background(), maxDecoded); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := renderImage(ctx, encoded(t, quarters(4, 4), mimePNG), mimePNG)
	decodeBudget.Release(maxDecoded)
	if err == nil {
		t.Error("decoded without memory for it")
	}
	if !decodeBudget.TryAcquire(maxDecoded) {
		t.Fatal("the budget was not given back")
	}
	decodeBudget.Release(maxDecoded)
}

// TestResampleInBands compares with scaling in one go.
func TestResampleInBands(t *testing.T) {
	img := image.NewRGBA(image.Rect(3, 5, 303, 205))
	rng := rand.New(rand.NewPCG(1, 2))
	for y := 5; y < 205; y++ {
		for x := 3; x < 303; x++ {
			img.SetRGBA(x, y, color.RGBA{uint8(60 + x/4), uint8(100 + rng.UintN(40)), uint8(60 + x*y/500), 255}) // no overshoot is clipped
		}
	}
	for _, size := range []image.Point{{200, 133}, {299, 200}, {70, 199}, {1, 1}} {
		got, err := resample(context.Background(), img, size)
		if err != nil {
			t.Fatal(err)
		}
		want := image.NewRGBA(image.Rectangle{Max: size})
		lanczos3.Scale(want, want.Rect, img, img.Rect, xdraw.Src, nil)
		for i, p := range got.(*image.RGBA).Pix {
			if d := int(p) - int(want.Pix[i]); d < -3 || d > 3 { // what lies between is rounded to 8 bits
				t.Fatalf("%v: byte %d is %d, want %d", size, i, p, want.Pix[i])
			}
		}
	}
}

// movingWebP wraps a still picture into the only frame of a moving one.
func movingWebP(still []byte, canvas, frame, at image.Point) []byte {
	uint24 := func(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16)} }
	chunk := func(name string, parts ...[]byte) []byte {
		body := bytes.Join(parts, nil)
		return append(binary.LittleEndian.AppendUint32([]byte(name), uint32(len(body))), body...)
	}
	body := bytes.Join([][]byte{
		[]byte("WEBP"),
		chunk("VP8X", []byte{1 << 1, 0, 0, 0}, uint24(canvas.X-1), uint24(canvas.Y-1)),
		chunk("ANIM", make([]byte, 6)),
		chunk("ANMF", uint24(at.X/2), uint24(at.Y/2), uint24(frame.X-1), uint24(frame.Y-1), uint24(100), []byte{0}, still[12:]),
	}, nil)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func TestMovingWebP(t *testing.T) {
	// A lossless picture.
	still := goldenWebP(t)
	cfg, err := decodeWebPConfig(bytes.NewReader(still))
	if err != nil {
		t.Fatal(err)
	}
	size := image.Pt(cfg.Width, cfg.Height)
	data := movingWebP(still, size.Add(image.Pt(10, 10)), size, image.Pt(4, 6))
	res := show(t, data)
	if res.Text != "Read image file [image/webp]" || len(res.Images) != 1 || !bytes.Equal(res.Images[0].Data, data) {
		t.Errorf("small: %q", res.Text)
	}
	wide := show(t, movingWebP(still, image.Pt(4000, 100), size, image.Pt(4, 6)))
	if img := only(t, wide); img.Bounds().Size() != image.Pt(2000, 50) {
		t.Errorf("wide: %v", img.Bounds())
	}
	outside := show(t, movingWebP(still, size, size, image.Pt(4, 6)))
	if outside.Images != nil {
		t.Error("a frame outside the canvas was shown")
	}
}

func TestFirstFrameLiesOnItsCanvas(t *testing.T) {
	still := quarters(4, 4)
	canvas := onCanvas(placed{still, image.Pt(2, 6)}, image.Config{Width: 10, Height: 12})
	if canvas.Bounds() != image.Rect(0, 0, 10, 12) || canvas.At(2, 6) != still.At(0, 0) || canvas.At(5, 9) != still.At(3, 3) {
		t.Error("the frame is not in its place")
	}
	if _, _, _, a := canvas.At(1, 5).RGBA(); a != 0 {
		t.Error("the rest is not transparent")
	}
}

func TestWebPOrientation(t *testing.T) {
	jpg := withOrientation(encoded(t, quarters(4, 4), mimeJPEG), 6, binary.LittleEndian)
	tiff := jpegEXIF(jpg)
	file := append([]byte("RIFF\x00\x00\x00\x00WEBPABCD\x03\x00\x00\x00xyz\x00EXIF"), binary.LittleEndian.AppendUint32(nil, uint32(len(tiff)))...)
	if o := orientation(append(file, tiff...), mimeWebP); o != 6 {
		t.Errorf("orientation %d, want 6", o)
	}
}

// FuzzImage feeds broken headers to everything that looks into an image.
func FuzzImage(f *testing.F) {
	img := image.NewRGBA(image.Rect(0, 0, 3, 2))
	draw.Draw(img, img.Rect, image.Black, image.Point{}, draw.Src)
	for _, encode := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return png.Encode(b, img) },
		func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
		func(b *bytes.Buffer) error { return bmp.Encode(b, img) },
		func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPANMF\x10\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, mimeType := range []string{mimeJPEG, mimeWebP} {
			if len(data) >= 12 {
				if o := orientation(data, mimeType); o < 1 || o > 8 {
					t.Fatalf("orientation %d", o)
				}
			}
		}
		mimeType := sniff(data, int64(len(data)))
		if mimeType == "" {
			return
		}
		if cfg, err := codecs[mimeType].config(bytes.NewReader(data)); err == nil && cfg.Width*cfg.Height > 1<<20 {
			t.Skip("too slow for many runs")
		}
		text, pictures, err := renderImage(context.Background(), data, mimeType)
		if err != nil || text == "" || len(pictures) > 1 {
			t.Fatalf("%q, %d pictures, %v", text, len(pictures), err)
		}
	})
}

func goldenWebP(t *testing.T) []byte {
	t.Helper()
	for _, c := range enginetest.Load(t, "read") {
		if c.ID == "read-065-webp" {
			data, err := base64.StdEncoding.DecodeString(*c.Files[0].Base64)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatal("there is no golden WebP picture")
	return nil
}
