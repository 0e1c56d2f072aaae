package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"
	"github.com/klauspost/compress/s2"
)

// checkTable verifies every checksum of a table file. The footer comes first,
// by our own reading: badger ends the process when its lengths are wrong. scratch is room that is used again.
func checkTable(path string, compression options.CompressionType, scratch *[]byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("badger panicked: %v", p)
		}
	}()
	if err := checkFooter(path); err != nil {
		return err
	}
	file, err := z.OpenMmapFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if sound(file.Data, compression, scratch) {
		return file.Close(-1)
	}
	t, err := table.OpenTable(file, table.Options{ // says what is wrong
		BlockSize: 4 << 10, Compression: compression, ChkMode: options.OnTableRead,
	})
	if err != nil {
		return err
	}
	return t.Close(-1)
}

// sound verifies the checksums of a table whose footer has been checked: of the index, and of each block that it
// lists. badger does the same at three times the cost, since it keeps all blocks until it is through. false says
// only that they could not be verified here.
func sound(file []byte, compression options.CompressionType, scratch *[]byte) bool {
	rest, sum := cutLast(file)
	_, index := cutLast(rest)
	if !sums(index, sum) {
		return false
	}
	blocks, at := fb.GetRootAsTableIndex(index, 0), fb.BlockOffset{}
	for i := range blocks.OffsetsLength() {
		if !blocks.Offsets(&at, i) || uint64(at.Offset())+uint64(at.Len()) > uint64(len(file)) {
			return false
		}
		block := file[at.Offset() : at.Offset()+at.Len()]
		switch compression {
		case options.None:
		case options.Snappy:
			var err error
			if block, err = s2.Decode((*scratch)[:cap(*scratch)], block); err != nil {
				return false
			}
			*scratch = block
		default:
			return false
		}
		if len(block) < 4 {
			return false
		}
		if block, sum = cutLast(block); sum == nil || !sums(block, sum) {
			return false
		}
	}
	return true
}

// cutLast cuts off the last part of b, whose length follows it in 4 bytes. The part is nil if b is too short.
func cutLast(b []byte) (rest, part []byte) {
	end := len(b) - 4
	start := int64(end) - int64(binary.BigEndian.Uint32(b[end:]))
	if start < 0 {
		return nil, nil
	}
	return b[:start], b[start:end]
}

// sums says whether sum is the checksum of data as badger's builder writes it: the message pb.Checksum with the
// algorithm CRC-32C, which is its default and so left out, and the sum as field 2.
func sums(data, sum []byte) bool {
	const field2 = 2 << 3 // of wire type 0, a varint
	if len(sum) == 0 || sum[0] != field2 {
		return false
	}
	want, n := binary.Uvarint(sum[1:])
	return n == len(sum)-1 && want == uint64(crc32.Checksum(data, castagnoli))
}

// checkFooter checks that the lengths at the end of a table file lie within it:
// ... index, its length (4 bytes), checksum, its length (4 bytes).
func checkFooter(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for _, part := range []string{"checksum", "index"} {
		var length [4]byte
		if end < 4 {
			return fmt.Errorf("the file is too short for its %s", part)
		}
		if _, err := f.ReadAt(length[:], end-4); err != nil {
			return err
		}
		end -= 4 + int64(binary.BigEndian.Uint32(length[:]))
		if end < 0 {
			return fmt.Errorf("the length of its %s is wrong", part)
		}
	}
	return nil
}
