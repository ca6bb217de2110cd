package marks

import (
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/internal/models"
)

func worlds() []World { return nil }

var _ = models.At
var _ marks.Rules
