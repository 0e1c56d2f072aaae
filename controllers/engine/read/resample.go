package read

import (
	"context"
	"image"
	"math"

	"golang.org/x/image/draw"
)

// lanczos3 is a windowed sinc of three lobes. It is 0 at every integer but 0, so that scaling by 1 along an
// axis leaves that axis as it is.
var lanczos3 = draw.Kernel{Support: 3, At: func(t float64) float64 {
	if t == 0 {
		return 1
	}
	if t >= 3 {
		return 0
	}
	x := math.Pi * t
	return 3 * math.Sin(x) * math.Sin(x/3) / (x * x)
}}

// band is the number of rows or columns that are scaled at a time.
const band = 64

// resample scales an image: first along the rows, then along the columns, in bands. The result is that of
// scaling in one go; the scaler's own buffer, 32 bytes a pixel, is what stays small.
func resample(ctx context.Context, img image.Image, size image.Point) (image.Image, error) {
	b := img.Bounds()
	if b.Size() == size {
		return img, nil
	}
	narrow := image.NewRGBA(image.Rect(0, 0, size.X, b.Dy()))
	for y := 0; y < b.Dy(); y += band {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		to := image.Rect(0, y, size.X, min(y+band, b.Dy()))
		from := image.Rect(b.Min.X, b.Min.Y+to.Min.Y, b.Max.X, b.Min.Y+to.Max.Y)
		lanczos3.Scale(narrow, to, img, from, draw.Src, nil)
	}
	out := image.NewRGBA(image.Rectangle{Max: size})
	for x := 0; x < size.X; x += band {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		to := image.Rect(x, 0, min(x+band, size.X), size.Y)
		lanczos3.Scale(out, to, narrow, image.Rect(to.Min.X, 0, to.Max.X, b.Dy()), draw.Src, nil)
	}
	return out, nil
}
