package simulator

import "net/http"

// servePoint answers with one entity.
func (s *tableService) servePoint(c *tableCall, g *Grant, a address) (*answer, *Fault) {
	accept, fields, selected, fault := c.shape()
	if fault != nil {
		return nil, fault
	}
	if fault := g.Entities(a.table, "r"); fault != nil {
		return nil, fault
	}
	if !g.Covers(a.pk, a.rk) {
		return nil, FaultAuthorization()
	}
	name, e, fault := s.point(a)
	if fault != nil {
		return nil, fault
	}
	w := newEntityWriter(accept, c.endpoint(), s.account, name, fields, selected)
	out := c.answer(http.StatusOK)
	out.header["Content-Type"] = []string{accept.contentType()}
	out.header["Etag"] = []string{e.etag}
	out.body = w.appendOne(make([]byte, 0, 512), e)
	return out, nil
}

// shape reads what form of an answer a request for one entity asks for. selected tells an empty $select from none.
func (c *tableCall) shape() (m metadata, fields []string, selected bool, fault *Fault) {
	if c.Req.URL.RawQuery == "" {
		m, fault = metadataOf(Header(c.Req.Header, "Accept"), "")
		return m, nil, false, fault
	}
	values := Query(c.Req.URL)
	if m, fault = metadataOf(Header(c.Req.Header, "Accept"), values.Get("$format")); fault != nil {
		return m, nil, false, fault
	}
	fields, fault = parseSelect(values.Get("$select"))
	return m, fields, values.Has("$select"), fault
}

func (s *tableService) point(a address) (name string, e *entity, fault *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, fault := s.find(a.table)
	if fault != nil {
		return "", nil, fault
	}
	if e = t.rows.get(a.pk, a.rk); e == nil {
		return "", nil, faultNotFound()
	}
	if !s.admit(t, a.pk, 1) {
		return "", nil, faultServerBusy()
	}
	return t.name, e, nil
}

// serveChange carries one operation out.
func (s *tableService) serveChange(c *tableCall, g *Grant, a address) (*answer, *Fault) {
	op, fault := parseOperation(c.Req.Method, a, c.Req.Header, formatOf(c.Req.URL.RawQuery), c.Body)
	if fault != nil {
		return nil, fault
	}
	changes, _, fault := s.commit(g, []*operation{op})
	if fault != nil {
		return nil, fault
	}
	out := c.answer(http.StatusNoContent)
	s.describe(c, out, changes[0])
	return out, nil
}

// describe fills in what an answer says of a change that was made.
func (s *tableService) describe(c *tableCall, out *answer, made change) {
	op := made.op
	if made.entity != nil {
		out.header["Etag"] = []string{made.entity.etag}
	}
	if op.verb != verbInsert {
		return
	}
	address := c.endpoint() + "/" + string(appendEntityAddress(nil, op.table, op.pk, op.rk))
	out.header["Location"] = []string{address}
	if op.prefer != "" {
		out.header["Preference-Applied"] = []string{op.prefer}
	}
	if op.prefer == "return-no-content" {
		out.header["Dataserviceid"] = []string{address}
		return
	}
	w := newEntityWriter(op.metadata, c.endpoint(), s.account, op.table, nil, false)
	out.status = http.StatusCreated
	out.header["Content-Type"] = []string{op.metadata.contentType()}
	out.body = w.appendOne(nil, made.entity)
}

// serveQuery answers with a page of entities.
func (s *tableService) serveQuery(c *tableCall, g *Grant, table string) (*answer, *Fault) {
	values := Query(c.Req.URL)
	q, fault := parseQuery(values)
	if fault != nil {
		return nil, fault
	}
	accept, fault := metadataOf(Header(c.Req.Header, "Accept"), values.Get("$format"))
	if fault != nil {
		return nil, fault
	}
	if fault := g.Entities(table, "r"); fault != nil {
		return nil, fault
	}
	name, p, fault := s.read(g, table, q)
	if fault != nil {
		return nil, fault
	}
	w := newEntityWriter(accept, c.endpoint(), s.account, name, q.fields, values.Has("$select"))
	out := c.answer(http.StatusOK)
	out.header["Content-Type"] = []string{accept.contentType()}
	if p.next != nil {
		out.header["X-Ms-Continuation-Nextpartitionkey"] = []string{appendToken(p.next.pk, p.after)}
		if !p.noRow {
			out.header["X-Ms-Continuation-Nextrowkey"] = []string{appendToken(p.next.rk, p.after)}
		}
	}
	out.body = w.appendPage(nil, p.entities)
	return out, nil
}
