module github.com/tablepatterns/tablepatterns/encryption/testdata/wycheproof

go 1.26.0

require github.com/c2sp/wycheproof v0.0.0-20260105152342-fca0d3ba9f12
