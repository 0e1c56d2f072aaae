package read

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

const (
	// maxSide is the largest width and height of an image that is shown, in pixels.
	maxSide = 2000
	// maxEncoded is the size in base64 that an image must stay below, in bytes.
	maxEncoded = 4718592
	// maxDecoded is the memory that decoded images may take in the whole process, in bytes. An image that
	// would need more is left out.
	maxDecoded = 256 << 20
)

// The notes in place of an image that cannot be shown.
const (
	notConverted = "[Image omitted: could not be converted to a supported inline image format.]"
	notResized   = "[Image omitted: could not be resized below the inline image size limit.]"
)

var decodeBudget = semaphore.NewWeighted(maxDecoded)

// codec decodes one type. Decoders are chosen by what sniff found rather than through a registry.
type codec struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = map[string]codec{
	mimeJPEG: {jpeg.DecodeConfig, jpeg.Decode},
	mimePNG:  {png.DecodeConfig, png.Decode},
	mimeGIF:  {gif.DecodeConfig, gif.Decode},
	mimeWebP: {decodeWebPConfig, decodeWebP},
	mimeBMP:  {decodeBMPConfig, decodeBMP},
}

// renderImage turns the bytes of an image into a text and, unless it had to be left out, a picture: the bytes
// themselves if they are small enough, else a smaller or converted one. The error is only that of the context.
func renderImage(ctx context.Context, data []byte, mimeType string) (string, []engine.Image, error) {
	omitted := notResized
	if mimeType == mimeBMP {
		omitted = notConverted
	}
	img, release, err := decode(ctx, data, mimeType)
	if err != nil {
		return describeImage(mimeType, omitted), nil, ctx.Err()
	}
	defer release()
	shown, notes := mimeType, []string(nil)
	if mimeType == mimeBMP {
		shown, notes = mimePNG, []string{"[Image converted from image/bmp to image/png.]"}
	}
	if whole := inline(img, data, mimeType); whole != nil {
		return describeImage(shown, notes...), []engine.Image{{MIMEType: shown, Data: whole}}, nil
	}
	small, err := shrink(ctx, img, orientation(data, mimeType))
	if err != nil {
		return "", nil, err
	}
	if small == nil {
		return describeImage(shown, append(notes, notResized)...), nil, nil
	}
	return describeImage(small.MIMEType, append(notes, small.note)...), []engine.Image{small.Image}, nil
}

// inline returns the bytes that show an image in its own size, or nil if it is too large for that.
func inline(img image.Image, data []byte, mimeType string) []byte {
	if size := img.Bounds().Size(); size.X > maxSide || size.Y > maxSide {
		return nil
	}
	if mimeType == mimeBMP {
		data, _ = encodePNG(img)
	}
	if len(data) == 0 || !fits(data) {
		return nil
	}
	return data
}

func describeImage(mimeType string, notes ...string) string {
	return strings.Join(append([]string{"Read image file [" + mimeType + "]"}, notes...), "\n")
}

func fits(data []byte) bool { return base64.StdEncoding.EncodedLen(len(data)) < maxEncoded }

// decode decodes an image within the process's budget. release gives the memory back and must be called.
func decode(ctx context.Context, data []byte, mimeType string) (_ image.Image, release func(), err error) {
	c := codecs[mimeType]
	cfg, err := c.config(bytes.NewReader(data))
	if err != nil {
		return nil, nil, fmt.Errorf("read image header: %w", err)
	}
	cost, ok := decodedSize(cfg, mimeType)
	if !ok {
		return nil, nil, fmt.Errorf("an image of %dx%d is too large to decode", cfg.Width, cfg.Height)
	}
	if err := decodeBudget.Acquire(ctx, cost); err != nil {
		return nil, nil, err
	}
	img, err := c.decode(bytes.NewReader(data))
	if err != nil {
		decodeBudget.Release(cost)
		return nil, nil, fmt.Errorf("decode image: %w", err)
	}
	return onCanvas(img, cfg), func() { decodeBudget.Release(cost) }, nil
}

// decodedSize estimates the memory for decoding, in bytes; ok is false if that is more than there may be.
func decodedSize(cfg image.Config, mimeType string) (cost int64, ok bool) {
	if cfg.Width <= 0 || cfg.Height <= 0 || cfg.Width > maxDecoded || cfg.Height > maxDecoded {
		return 0, false
	}
	perPixel := int64(4)
	switch cfg.ColorModel {
	case color.GrayModel:
		perPixel = 1
	case color.Gray16Model:
		perPixel = 2
	case color.RGBA64Model, color.NRGBA64Model:
		perPixel = 8
	}
	if _, paletted := cfg.ColorModel.(color.Palette); paletted {
		perPixel = 1
	}
	if mimeType == mimeJPEG {
		perPixel += 2 // a progressive one keeps its coefficients beside the pixels
	}
	cost = int64(cfg.Width) * int64(cfg.Height) * perPixel
	return cost, cost <= maxDecoded
}

// onCanvas puts a first frame that is smaller than the picture in its place.
func onCanvas(img image.Image, cfg image.Config) image.Image {
	whole := image.Rect(0, 0, cfg.Width, cfg.Height)
	if img.Bounds() == whole {
		return img
	}
	canvas := image.NewRGBA(whole)
	draw.Draw(canvas, img.Bounds(), img, img.Bounds().Min, draw.Src)
	return canvas
}

// smaller is an image that was scaled down or encoded anew.
type smaller struct {
	engine.Image
	note string
}

// shrink turns an image upright, scales it to at most maxSide and encodes it, smaller and smaller until it
// fits. It returns nil if nothing does.
func shrink(ctx context.Context, img image.Image, o exifOrientation) (*smaller, error) {
	original := o.size(img.Bounds().Size())
	for size := limitSides(original); ; size = image.Pt(max(1, size.X*3/4), max(1, size.Y*3/4)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		scaled, err := resample(ctx, img, o.size(size))
		if err != nil {
			return nil, err
		}
		if encoded := encodeSmallest(o.apply(scaled)); encoded != nil {
			factor := float64(original.X) / float64(size.X)
			return &smaller{*encoded, fmt.Sprintf(
				"[Image: original %dx%d, displayed at %dx%d. Multiply coordinates by %.2f to map to original image.]",
				original.X, original.Y, size.X, size.Y, factor)}, nil
		}
		if size == image.Pt(1, 1) {
			return nil, nil
		}
	}
}

// limitSides scales a size down so that no side exceeds maxSide nor becomes nothing.
func limitSides(s image.Point) image.Point {
	if s.X > maxSide {
		s = image.Pt(maxSide, max(1, roundDiv(s.Y*maxSide, s.X)))
	}
	if s.Y > maxSide {
		s = image.Pt(max(1, roundDiv(s.X*maxSide, s.Y)), maxSide)
	}
	return s
}

// roundDiv divides positive numbers, halves rounded up.
func roundDiv(a, b int) int { return (2*a + b) / (2 * b) }

// encodeSmallest returns the first encoding that fits, the lossless one first, or nil.
func encodeSmallest(img image.Image) *engine.Image {
	if data, err := encodePNG(img); err == nil && fits(data) {
		return &engine.Image{MIMEType: mimePNG, Data: data}
	}
	opaque := flatten(img)
	for _, quality := range []int{80, 85, 70, 55, 40} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, opaque, &jpeg.Options{Quality: quality}); err == nil && fits(b.Bytes()) {
			return &engine.Image{MIMEType: mimeJPEG, Data: b.Bytes()}
		}
	}
	return nil
}

func encodePNG(img image.Image) ([]byte, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, fmt.Errorf("encode image: %w", err)
	}
	return b.Bytes(), nil
}

// flatten puts an image on white, for a format without transparency.
func flatten(img image.Image) image.Image {
	flat := image.NewRGBA(img.Bounds())
	draw.Draw(flat, flat.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Rect, img, img.Bounds().Min, draw.Over)
	return flat
}
