package logtail

import "time"

// SetPage makes followers read less at once, so that tests of a long backlog are short.
func SetPage[T any](l *Log[T], entries int) { l.page = entries }

// SetUptime gives followers another measure of the time that passes.
func SetUptime[T any](l *Log[T], uptime func() time.Duration) { l.uptime = uptime }
