package read

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
)

// exifOrientation says how a camera held the picture: 1 to 8 as in EXIF, 1 is upright.
type exifOrientation int

const upright exifOrientation = 1

// turned says whether rows and columns change places.
func (o exifOrientation) turned() bool { return o >= 5 }

// size is the size after turning, and, turning being its own inverse here, the one before.
func (o exifOrientation) size(s image.Point) image.Point {
	if o.turned() {
		return image.Pt(s.Y, s.X)
	}
	return s
}

// apply returns the picture upright.
func (o exifOrientation) apply(img image.Image) image.Image {
	if o == upright {
		return img
	}
	b := img.Bounds()
	out := image.NewRGBA(image.Rectangle{Max: o.size(b.Size())})
	w, h := out.Rect.Dx(), out.Rect.Dy()
	for y := range h {
		for x := range w {
			sx, sy := x, y
			switch o {
			case 2:
				sx = w - 1 - x
			case 3:
				sx, sy = w-1-x, h-1-y
			case 4:
				sy = h - 1 - y
			case 5:
				sx, sy = y, x
			case 6:
				sx, sy = y, w-1-x
			case 7:
				sx, sy = h-1-y, w-1-x
			case 8:
				sx, sy = h-1-y, x
			}
			out.SetRGBA(x, y, color.RGBAModel.Convert(img.At(b.Min.X+sx, b.Min.Y+sy)).(color.RGBA))
		}
	}
	return out
}

// orientation finds the orientation in the EXIF block of a JPEG or WebP file; without one it is upright.
func orientation(data []byte, mimeType string) exifOrientation {
	switch mimeType {
	case mimeJPEG:
		return tiffOrientation(jpegEXIF(data))
	case mimeWebP:
		exif, _ := webpChunk(data, "EXIF")
		return tiffOrientation(bytes.TrimPrefix(exif, exifPrefix))
	}
	return upright
}

var exifPrefix = []byte("Exif\x00\x00")

// jpegEXIF returns the TIFF block of the first EXIF segment before the picture data.
func jpegEXIF(data []byte) []byte {
	for rest := data[2:]; len(rest) >= 4 && rest[0] == 0xFF; {
		marker, length := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if marker == 0xFF { // padding
			rest = rest[1:]
			continue
		}
		if marker == 0xDA || length < 2 || len(rest) < 2+length {
			return nil
		}
		if tiff, ok := bytes.CutPrefix(rest[4:2+length], exifPrefix); ok && marker == 0xE1 {
			return tiff
		}
		rest = rest[2+length:]
	}
	return nil
}

// tiffOrientation reads tag 0x0112 of the first directory.
func tiffOrientation(tiff []byte) exifOrientation {
	if len(tiff) < 8 {
		return upright
	}
	var order binary.ByteOrder
	switch string(tiff[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return upright
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return upright
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			break
		}
		const tag, short = 0x0112, 3
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if o := exifOrientation(order.Uint16(entries[8:])); o >= upright && o <= 8 {
				return o
			}
			break
		}
		entries = entries[12:]
	}
	return upright
}
