package storagetest

import (
	"fmt"
	"runtime"
)

func (r *recorder) say(text string) { r.said.WriteString(r.name + ": " + text + "\n") }

func (r *recorder) Log(args ...any)                 { r.say(fmt.Sprint(args...)) }
func (r *recorder) Logf(format string, args ...any) { r.say(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)               { r.failed = true; r.Log(args...) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.Logf(format, args...)
}
func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
