// Takes the events of `proto-webhooks serve`: verifies each, handles it once, and answers.
//
//	go run consumer.go sink.secret [former.secret]
//
// Go 1.19 or newer, and nothing else. It listens at 127.0.0.1:3000 (HOST, PORT) and remembers what was handled in
// handled.log (JOURNAL), so only one process may run on that file.
package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxBytes = 16 << 20       // an event has the seller's body (1 MiB) up to three times, and escaped
	remember = 72 * time.Hour // longer than serve may be away
)

// Event is a CloudEvents 1.0 event. Data has some members of many: docs/events.md of the package has all.
type Event struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Data    struct {
		Kind           string          `json:"kind"`
		Status         string          `json:"status"`
		TaskID         string          `json:"taskId"`
		IdempotencyKey string          `json:"idempotencyKey"`
		Data           json.RawMessage `json:"data"`
		Envelope       json.RawMessage `json:"envelope"`
	} `json:"data"`
}

// errNeverPossible, or an error that wraps it, says that the event can never be handled. It is not sent again: serve
// keeps it as DEAD.
var errNeverPossible = errors.New("never possible")

// handle is yours. When it returns nil, the event is done. When it returns an error, the event comes again.
//
// It may also come again if this process dies between here and the journal. So, if this writes to a database, write
// event.ID into a unique column in the same transaction: then the event has its effect once.
func handle(_ context.Context, event Event) error {
	fmt.Printf("%s %+q %+q\n", event.Type, event.Data.IdempotencyKey, event.Data.Data)
	return nil
}

// journal has the ids of the events that were handled, on disk. Nobody handles an event while another goroutine does.
type journal struct {
	mutex     sync.Mutex
	path      string
	file      *os.File
	handled   map[string]int64 // by id: Unix seconds
	running   map[string]chan struct{}
	compacted time.Time
}

func openJournal(path string) (*journal, error) {
	j := &journal{path: path, handled: map[string]int64{}, running: map[string]chan struct{}{}}
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			// The last line may be half of one, of a process that died.
			at, id, found := strings.Cut(lines.Text(), " ")
			if seconds, err := strconv.ParseInt(at, 10, 64); err == nil && found && strings.HasSuffix(id, ".") {
				j.handled[strings.TrimSuffix(id, ".")] = seconds
			}
		}
		err = lines.Err()
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return j, j.compact()
}

// compact writes the file anew, without what is older than `remember`.
func (j *journal) compact() error {
	file, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(file)
	for id, at := range j.handled {
		if time.Since(time.Unix(at, 0)) > remember {
			delete(j.handled, id)
		} else {
			fmt.Fprintf(lines, "%d %s.\n", at, id)
		}
	}
	err = lines.Flush()
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(j.path+".new", j.path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(j.path))
	}
	if err != nil {
		file.Close()
		return err
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.compacted = file, time.Now()
	return nil
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// once calls work, unless it has returned nil for this id before. The id is written only after it has.
func (j *journal) once(ctx context.Context, id string, work func() error) error {
	known, err := j.begin(ctx, id)
	if known || err != nil {
		return err
	}
	defer j.end(id)
	if err := work(); err != nil {
		return err
	}
	return j.add(id)
}

func (j *journal) begin(ctx context.Context, id string) (known bool, err error) {
	for {
		j.mutex.Lock()
		_, known := j.handled[id]
		other, busy := j.running[id]
		if !known && !busy {
			j.running[id] = make(chan struct{})
		}
		j.mutex.Unlock()
		if known || !busy {
			return known, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (j *journal) end(id string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	close(j.running[id])
	delete(j.running, id)
}

func (j *journal) add(id string) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if time.Since(j.compacted) > 24*time.Hour {
		if err := j.compact(); err != nil {
			return err
		}
	}
	now := time.Now().Unix()
	if _, err := fmt.Fprintf(j.file, "%d %s.\n", now, id); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.handled[id] = now
	return nil
}

// keyIn reads the key of a file with a secret of Standard Webhooks.
func keyIn(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	secret := strings.TrimSpace(string(text))
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || !strings.HasPrefix(secret, "whsec_") || len(key) < 24 {
		return nil, fmt.Errorf("%s: not whsec_ and the base64 of at least 24 bytes", path)
	}
	return key, nil
}

// isAuthentic says if serve has signed this within the last five minutes, with one of the secrets.
func isAuthentic(header http.Header, body []byte, secrets []string) (bool, error) {
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	at, err := strconv.ParseInt(timestamp, 10, 64)
	if age := time.Since(time.Unix(at, 0)); err != nil || age.Abs() > 5*time.Minute {
		return false, nil
	}
	given := strings.Fields(header.Get("Webhook-Signature"))
	authentic := false
	for _, path := range secrets {
		key, err := keyIn(path)
		if err != nil {
			return false, err
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, timestamp)
		mac.Write(body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for index := 0; index < len(given) && index < 10; index++ {
			authentic = hmac.Equal(expected, []byte(given[index])) || authentic
		}
	}
	return authentic, nil
}

// door answers POST /events.
func door(done *journal, secrets []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			http.Error(w, "the path is /events", http.StatusNotFound)
			return
		}
		if r.Method != http.MethodPost {
			http.Error(w, "POST", http.StatusMethodNotAllowed)
			return
		}
		if r.ContentLength > maxBytes {
			http.Error(w, fmt.Sprintf("over %d bytes", maxBytes), http.StatusRequestEntityTooLarge)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
		if err != nil {
			http.Error(w, fmt.Sprintf("over %d bytes, or cut", maxBytes), http.StatusRequestEntityTooLarge)
			return
		}
		authentic, err := isAuthentic(r.Header, body, secrets)
		if err != nil {
			log.Print(err)
			http.Error(w, "see the log of the consumer", http.StatusInternalServerError)
			return
		}
		if !authentic {
			http.Error(w, "no signature by a known secret, or too old", http.StatusUnauthorized)
			return
		}
		// Never 422 for what cannot be read: serve would give the event up for a mistake made here.
		var event Event
		if err := json.Unmarshal(body, &event); err != nil || event.ID != r.Header.Get("Webhook-Id") || event.Data.Kind == "" {
			http.Error(w, "not an event", http.StatusBadRequest)
			return
		}
		err = done.once(r.Context(), event.ID, func() error { return handle(r.Context(), event) })
		switch {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, errNeverPossible):
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		default:
			log.Print(err)
			http.Error(w, "see the log of the consumer", http.StatusInternalServerError)
		}
	}
}

// setting reads an environment variable.
func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	secrets := os.Args[1:] // read at each request: a rotation needs no restart
	if len(secrets) == 0 {
		secrets = []string{"sink.secret"}
	}
	for _, path := range secrets {
		if _, err := keyIn(path); err != nil {
			log.Fatal(err)
		}
	}
	done, err := openJournal(setting("JOURNAL", "handled.log"))
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{
		Addr:              net.JoinHostPort(setting("HOST", "127.0.0.1"), setting("PORT", "3000")),
		Handler:           door(done, secrets),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	log.Fatal(server.ListenAndServe())
}
