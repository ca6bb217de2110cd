package refusal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/leaks"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// errLost marks an error of a job that says that a refusal was taken for something else.
var errLost = errors.New("a refusal was taken for something else")

// codes are what the services' documentation lists with 403, 404, 409 and 412, without the codes that say that something is gone or that
// another writer has changed it: by service, "" for all, and by status.
var codes = map[storagetest.StorageService]map[int]string{
	"": {403: "AccountIsDisabled AuthorizationPermissionMismatch InsufficientAccountPermissions", 409: "AccountBeingCreated ResourceTypeMismatch",
		400: "FeatureVersionMismatch"},
	storagetest.TableService: {404: "TableNotFound", 409: "TableBeingDeleted"},
	storagetest.QueueService: {404: "QueueNotFound", 409: "QueueBeingDeleted QueueDisabled"},
	storagetest.BlobService: {
		403: "UnauthorizedBlobOverwrite", 404: "ContainerNotFound CannotVerifyCopySource",
		409: `BlobArchived BlobBeingRehydrated BlobNotArchived BlobTierInadequateForContentLength CannotChangeToLowerTier ContentLengthLargerThanTierLimit
			BlobImmutableDueToPolicy BlobImmutableDueToLegalHold ContainerHasLegalHold ContainerImmutabilityPolicyLocked AccountProtectedFromDeletion
			SnapshotsPresent SnapshotCountExceeded SnapshotOperationRateExceeded ContainerBeingDeleted ContainerDisabled
			LeaseAlreadyBroken LeaseAlreadyPresent LeaseIdMismatchWithLeaseOperation LeaseNotPresentWithLeaseOperation InfiniteLeaseDurationRequired
			LeaseIsBreakingAndCannotBeAcquired LeaseIsBreakingAndCannotBeChanged LeaseIsBrokenAndCannotBeRenewed
			PendingCopyOperation SystemInUse BlobUsesCustomerSpecifiedEncryption InvalidBlobType BlobOperationNotSupported BlobOverwritten
			BlobIsSealed BlockCountExceedsLimit`,
		412: `LeaseIdMissing LeaseLost LeaseIdMismatchWithBlobOperation LeaseIdMismatchWithContainerOperation LeaseNotPresentWithBlobOperation
			LeaseNotPresentWithContainerOperation MaxBlobSizeConditionNotMet`,
	},
}

// refusals returns the codes of a service, a code that nobody knows, and responses without a code.
func refusals(of storagetest.StorageService) (all []storagetest.Refusal) {
	for _, status := range []int{400, 403, 404, 409, 410, 412} {
		for _, code := range append(strings.Fields(codes[""][status]+" "+codes[of][status]), "OfANewerVersion", "") {
			all = append(all, storagetest.Refusal{Status: status, Code: code})
		}
	}
	return all
}

// TestSweep answers each refusal to each call of each job. A job must send no delete for what was refused, lose nothing, and report
// neither another writer nor something missing.
func TestSweep(t *testing.T) {
	points := 0
	for _, j := range jobs() {
		t.Run(j.name, func(t *testing.T) {
			faulty, faults := prepared(t, j).WithRetries(0).Faulty(nil)
			p := assert.Must[*process](t)(start(faulty))
			assert.Check(t, j.run(t.Context(), p), harness.Settle(t.Context(), p.store))
			for i, call := range faults.Calls() {
				for n, refusal := range refusals(call.Service) {
					if testing.Short() && (i+n)%7 != 0 {
						continue
					}
					points++
					for tries := 1; !refuse(t, j, i, refusal); tries++ {
						if tries == 10 {
							t.Fatalf("call %d was not made in %d runs", i, tries)
						}
					}
				}
			}
		})
	}
	t.Logf("%d points", points)
}

// prepared returns a service on which the job can run.
func prepared(t *testing.T, j job) *storagetest.Service {
	t.Helper()
	s := storagetest.Simulator(t, nil)
	p := assert.Must[*process](t)(start(s.WithRetries(0)))
	assert.Check(t, p.store.Create(t.Context()))
	if j.before != nil {
		assert.Check(t, j.before(t.Context(), p))
	}
	assert.Check(t, harness.Settle(t.Context(), p.store)) // what is done in the background must not change the number of the job's calls
	return s
}

// refuse runs the job, and answers its call number i with the refusal. It returns false if the job has made fewer calls this time, since what
// a change does in the background may need one more or less.
func refuse(t *testing.T, j job, i int, refusal storagetest.Refusal) bool {
	s := prepared(t, j)
	faulty, faults := s.WithRetries(0).Faulty(storagetest.OnIndex(i, refusal))
	p := assert.Must[*process](t)(start(faulty))
	err := errors.Join(j.run(t.Context(), p), harness.Settle(t.Context(), p.store))
	harness.OneKind(t, err)
	calls := faults.Calls()
	if i >= len(calls) {
		assert.Check(t, err)
		return false
	}
	refused := calls[i]
	at := refused.String() + ", " + refusal.String()
	if errors.Is(err, errLost) {
		t.Errorf("%s: %v", at, err)
	}
	for _, kind := range []error{tables.ErrConflict, tables.ErrExists, tables.ErrNotFound, tables.ErrDuplicate, tables.ErrMissingReference} {
		if errors.Is(err, kind) {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, call := range calls[i+1:] {
		neverStored := refused.Kind == storagetest.PutBlob // a change deletes the blob that it may have stored
		if call.Kind == storagetest.DeleteBlob && call.Resource == refused.Resource && !neverStored {
			t.Errorf("%s: then %v was sent", at, call)
		}
	}
	after(t, j, s, p.got, at)
	return true
}

// after lets workers finish after the refusal has ended, and checks what is stored.
func after(t *testing.T, j job, s *storagetest.Service, got []string, at string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := assert.Must[*process](t)(start(s))
	p.got = got
	for range 3 {
		s.Wait(time.Hour)
		assert.Check(t, p.work(ctx, p.mail))
	}
	for _, m := range assert.Must[[]eventual.PoisonMessage](t)(p.mail.Poison().Peek(ctx, 32)) {
		if strings.Contains(m.Reason, "another writer") {
			t.Errorf("%s: a message is poisoned with %q", at, m.Reason)
		}
	}
	if j.check != nil {
		assert.NoError(t, j.check(ctx, p), at)
	}
}
