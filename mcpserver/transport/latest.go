package transport

// latest keeps the newest entries of a map, so that what clients make us
// remember stays bounded. It does not lock.
type latest[K comparable, V any] struct {
	limit  int
	values map[K]V
	order  []K // oldest first
}

func newLatest[K comparable, V any](limit int) *latest[K, V] {
	return &latest[K, V]{limit: limit, values: make(map[K]V)}
}

// put sets a value; a key that is there already keeps its age.
func (l *latest[K, V]) put(k K, v V) {
	_, known := l.values[k]
	l.values[k] = v
	if known {
		return
	}
	l.order = append(l.order, k)
	if len(l.order) > l.limit {
		delete(l.values, l.order[0])
		l.order = l.order[1:]
	}
}
