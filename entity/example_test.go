package entity_test

import (
	"errors"
	"fmt"

	"github.com/tablepatterns/tablepatterns/entity"
)

func Example() {
	e := &entity.Entity{Key: entity.Key{Partition: "Sales", Row: "000223"}}
	e.Set("Name", entity.String("June"))
	e.Set("Age", entity.Int32(31))
	age, _ := e.Get("Age").Int()
	fmt.Println(e.Key.Row, age, e.Get("Name"))

	err := error(&entity.Error{Op: "Get", Table: "Staff", Key: e.Key, Kind: entity.ErrNotFound})
	fmt.Println(err, errors.Is(err, entity.ErrNotFound))
	// Output:
	// 000223 31 Edm.String of 12 bytes
	// tablepatterns: Get in Staff ("Sales", "000223"): not found true
}
