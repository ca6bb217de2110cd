// Package entity has the words that every other package uses: keys, values, properties, entities as property bags, conditions, reports
// and errors. It makes no request. Package tables names all of it, so that programs need no import of package entity:
// tables.Key is entity.Key.
package entity
