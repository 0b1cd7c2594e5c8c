package dataruns

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The datasets that the suite asks questions of.
const (
	shop  = "shop"  // good files: orders.csv, items.json
	odd   = "odd"   // files that can be read, and are odd
	bad   = "bad"   // files that cannot be read, beside one that can
	twins = "twins" // two files with one stem
	mail  = "mail"  // one text, for a model
	vault = "vault" // what nobody may see who asks the others
)

// secret is in the vault.
const secret = "SECRET-7f3a9c"

// wideColumns is more than people have, and less than the most.
const wideColumns = 10_000

// writeData writes the datasets into a directory of the test.
func writeData(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "datasets")
	for name, text := range map[string]string{
		"shop/orders.csv": "id,customer,status,amount,placed\n" +
			"1,ada,paid,10.50,2024-01-02\n2,bob,open,20.25,2024-01-03\n3,ada,paid,30.00,2024-02-01\n" +
			"4,eve,lost,,2024-02-02\n5,bob,paid,0.25,2024-02-03\n",
		"shop/items.json": `[{"order_id":1,"sku":"pen","n":2},{"order_id":1,"sku":"ink","n":1},{"order_id":3,"sku":"pen","n":7}]`,

		"odd/bom.csv":        "\xef\xbb\xbfid,name\n1,first\n",
		"odd/quotes.csv":     "id,text\n1,\"a, \"\"quoted\"\" word\nand a line\"\n2,plain\n",
		"odd/mixed.csv":      "v\n" + strings.Repeat("1\n", 30_000) + "word\n2024-01-01\n",
		"odd/2024 sales.csv": "month,total\n1,100\n2,200\n",
		"odd/wide.csv":       wide(),

		"odd/days.parquet": days(t),

		"bad/good.csv":   "a\n1\n",
		"bad/empty.csv":  "",
		"bad/latin1.csv": "id,name\n1,caf\xe9\n2,plain\n",

		"twins/orders.csv":  "a\n1\n",
		"twins/orders.json": `[{"a":1}]`,

		"mail/letters.csv": "text\n\"" + letter + "\"\n",

		"vault/secrets.csv": "word\n" + secret + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// days is a file of Parquet: id, name and day in two rows, the second with nothing in
// it but its id.
func days(t *testing.T) string {
	t.Helper()
	const text = "UEFSMRUAFRwVHCwVBBUAFQYVBgAAAgAAAAQBAQAAAAIAAAAVABVWFVYsFQQVABUGFQYAACEAAABBAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" +
		"AAACAAAAw6kVABVSFVIsFQQVABUGFQYAACEAAABBAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABXRwAAFQIZTDUAGA1kdWNrZGJfc2NoZW1h" +
		"FQYAFQIlAhgCaWQlIgAVDCUCGARuYW1lJQAAFQIlAhgDZGF5JQwAFgQZHBk8JgAcFQIZFQAZGAJpZBUAFgQWPhY+Jgg8GAQCAAAAGAQBAAAAFgAoBAIA" +
		"AAAYBAEAAAAREQAAACYAHBUMGRUAGRgEbmFtZRUAFgQWeBZ4JkY8GALDqRgCw6kWAigCw6kYAsOpEREAAAAmABwVAhkVABkYA2RheRUAFgQWdBZ0Jr4B" +
		"PBgEV0cAABgEV0cAABYCKARXRwAAGARXRwAAEREAAAAWqgIWBCYIFqoCACgoRHVja0RCIHZlcnNpb24gdjEuNS41IChidWlsZCBkOGNkYWEzM2ZkKRk8" +
		"HAAAHAAAHAAAACQBAABQQVIx"
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wide() string {
	var head, row strings.Builder
	for i := range wideColumns {
		if i > 0 {
			head.WriteByte(',')
			row.WriteByte(',')
		}
		head.WriteString("c" + strconv.Itoa(i))
		row.WriteString(strconv.Itoa(i))
	}
	return head.String() + "\n" + row.String() + "\n"
}
