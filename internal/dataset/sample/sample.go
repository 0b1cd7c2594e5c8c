package sample

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// File is one file of the datasets.
type File struct {
	Path string // below the directory, with /
	Data []byte
}

// Files returns all files: the tables of each dataset, and the registry.json that
// describes them.
func Files() []File {
	orders, items := shop(orderRows)
	return []File{
		{"ecommerce/inventory.csv", inventory()},
		{"ecommerce/order_items.csv", items},
		{"ecommerce/orders.csv", orders},
		{"iot/sensors.csv", sensors()},
		{"registry.json", []byte(registry)},
		{"support/tickets.csv", tickets()},
	}
}

// Orders returns a CSV like orders of the shop, of as many rows as one wants.
func Orders(rows int) []byte {
	orders, _ := shop(rows)
	return orders
}

const registry = `{
  "datasets": [
    {"id": "ecommerce", "description": "A shop: orders, what was ordered, and what is in stock"},
    {"id": "iot", "description": "Readings of the sensors in a building, one an hour"},
    {"id": "support", "description": "Tickets of the shop's customers"}
  ]
}
`

// Rows of each table.
const (
	orderRows  = 2000
	productIDs = 120
	ticketRows = 800
	sensorIDs  = 20
	sensorDays = 21
	customers  = 400
	days       = 364
)

// shop makes orders and their items: each item's order is there.
func shop(rows int) (orders, items []byte) {
	var o, i bytes.Buffer
	o.WriteString("order_id,customer_id,ordered_at,status,country,total\n")
	i.WriteString("item_id,order_id,product_id,quantity,unit_price\n")
	d, item := dice(1), 0
	for id := 1; id <= rows; id++ {
		total := 0
		for range d.between(1, 4) {
			item++
			quantity, price := d.between(1, 5), d.between(199, 19999)
			total += quantity * price
			fmt.Fprintf(&i, "%d,%d,%d,%d,%s\n", item, id, d.between(1, productIDs), quantity, cents(price))
		}
		fmt.Fprintf(&o, "%d,%d,%s,%s,%s,%s\n", id, d.between(1, customers), moment(d.day(days)),
			d.one("delivered", "shipped", "pending", "cancelled", "returned"), d.one("DE", "FR", "US", "GB", "JP", "BR"), cents(total))
	}
	return o.Bytes(), i.Bytes()
}

// inventory has one row for each product that can be ordered.
func inventory() []byte {
	var b bytes.Buffer
	b.WriteString("product_id,name,category,in_stock,reorder_level,unit_cost,discontinued\n")
	d := dice(2)
	for id := 1; id <= productIDs; id++ {
		fmt.Fprintf(&b, "%d,\"%s, %s\",%s,%d,%d,%s,%t\n", id, d.one("Lamp", "Desk", "Chair", "Shelf", "Clock", "Rug"), d.one("small", "medium", "large"),
			d.one("home", "office", "garden", "kids"), d.below(500), d.between(5, 50), cents(d.between(99, 9999)), d.below(12) == 0)
	}
	return b.Bytes()
}

// tickets are not all closed, and not all rated.
func tickets() []byte {
	var b bytes.Buffer
	b.WriteString("ticket_id,customer_id,opened_at,closed_at,channel,priority,subject,rating\n")
	d := dice(3)
	for id := 1; id <= ticketRows; id++ {
		opened := d.day(days)
		closed, rating := "", ""
		if d.below(5) > 0 {
			closed = moment(opened.Add(time.Duration(d.between(10, 10000)) * time.Minute))
			if d.below(3) > 0 {
				rating = fmt.Sprint(d.between(1, 5))
			}
		}
		fmt.Fprintf(&b, "%d,%d,%s,%s,%s,%s,%s,%s\n", id, d.between(1, customers), moment(opened), closed, d.one("email", "chat", "phone"),
			d.one("normal", "low", "high", "urgent"), d.one("Where is my order?", "\"Refund, please\"", "It does not work", "\"How do I \"\"return\"\" it?\""), rating)
	}
	return b.Bytes()
}

// sensors have a reading for each hour, but for those that they missed.
func sensors() []byte {
	var b bytes.Buffer
	b.WriteString("sensor_id,room,read_at,temperature,humidity,battery\n")
	d := dice(4)
	for hour := range sensorDays * 24 {
		at := moment(start.Add(time.Duration(hour) * time.Hour))
		for id := 1; id <= sensorIDs; id++ {
			humidity := fmt.Sprint(d.between(25, 70))
			switch d.below(100) {
			case 0:
				continue
			case 1:
				humidity = ""
			}
			fmt.Fprintf(&b, "s%02d,%s,%s,%d.%d,%s,%d\n", id, rooms[id%len(rooms)], at, d.between(15, 27), d.below(10), humidity, 100-hour*100/(sensorDays*24*2))
		}
	}
	return b.Bytes()
}

var rooms = []string{"lobby", "kitchen", "lab", "office", "attic"}

// Write puts the files into a directory, which is made where it is not there. Those
// that are there already stay; one with other content is an error, and nothing is
// written then.
func Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // sandboxes of another user read it
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = write(root, Files())
	return errors.Join(err, root.Close())
}

func write(root *os.Root, files []File) error {
	var missing []File
	var taken []string
	for _, f := range files {
		data, err := root.ReadFile(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
		case err != nil:
			return err
		case !bytes.Equal(data, f.Data):
			taken = append(taken, f.Path)
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("%s is there with other content: %w", strings.Join(taken, ", "), fs.ErrExist)
	}
	for _, f := range missing {
		if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(f.Path, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
