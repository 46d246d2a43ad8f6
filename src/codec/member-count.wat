;; Counts the colons outside strings in JSON text, 64 bytes at a time, looks for backslashes in member names, and minds
;; how deep brackets nest.
;; Assembled by wabt's `wat2wasm` into member-count.ts; test/codec/member-count.test.ts holds the two together.
(module
  (memory (export "memory") 1)

  ;; What one call leaves to the next of the same text.
  (global $members (mut i32) (i32.const 0))
  (global $level (mut i32) (i32.const 0))
  (global $escape (mut i64) (i64.const 0)) ;; 1: the first byte of the next block is escaped
  (global $string (mut i64) (i64.const 0)) ;; all ones: the next block begins inside a string
  (global $written (mut i64) (i64.const 0)) ;; 1: that string has a backslash so far
  (global $after (mut i64) (i64.const 0)) ;; 1: only white space so far behind a string that has one
  (global $escaped (mut i32) (i32.const 0)) ;; 1: a colon came behind such a string

  ;; One bit for each of 64 bytes: set where it is equal to the bytes of $what.
  (func $equal (param $a v128) (param $b v128) (param $c v128) (param $d v128) (param $what v128) (result i64)
    (i64.or
      (i64.or
        (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $a) (local.get $what))))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $b) (local.get $what)))) (i64.const 16)))
      (i64.or
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $c) (local.get $what)))) (i64.const 32))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $d) (local.get $what)))) (i64.const 48)))))

  ;; Bytes 0 to $length of the memory, after those of earlier calls unless $first. All but the last call of a text
  ;; give a multiple of 64 bytes. Returns twice the colons outside strings so far, one more where a name among them has
  ;; a backslash; -1 where brackets may nest deeper than $most: by 64 bytes at most, counted as if a block's closing
  ;; brackets came after its opening ones.
  (func (export "count") (param $length i32) (param $first i32) (param $most i32) (result i32)
    (local $at i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local $backslash i64) (local $codes i64) (local $quote i64) (local $outside i64) (local $colon i64)
    (local $space i64) (local $sum i64) (local $more i64)
    (if (local.get $first)
      (then
        (global.set $members (i32.const 0))
        (global.set $level (i32.const 0))
        (global.set $escape (i64.const 0))
        (global.set $string (i64.const 0))
        (global.set $written (i64.const 0))
        (global.set $after (i64.const 0))
        (global.set $escaped (i32.const 0))))
    ;; The last block is filled up with what counts as nothing.
    (memory.fill
      (local.get $length)
      (i32.const 0)
      (i32.and (i32.sub (i32.const 0) (local.get $length)) (i32.const 63)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $length)))
        (local.set $a (v128.load (local.get $at)))
        (local.set $b (v128.load offset=16 (local.get $at)))
        (local.set $c (v128.load offset=32 (local.get $at)))
        (local.set $d (v128.load offset=48 (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (local.set $quote
          (call $equal (local.get $a) (local.get $b) (local.get $c) (local.get $d) (v128.const i8x16 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34 34)))
        (local.set $backslash
          (call $equal (local.get $a) (local.get $b) (local.get $c) (local.get $d) (v128.const i8x16 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92 92)))

        ;; Quotes behind an odd number of backslashes end nothing (simdjson's json_escape_scanner).
        (if (i64.ne (i64.or (local.get $backslash) (global.get $escape)) (i64.const 0))
          (then
            (local.set $codes (i64.and (local.get $backslash) (i64.xor (global.get $escape) (i64.const -1))))
            (local.set $codes
              (i64.xor
                (i64.sub
                  (i64.or (i64.shl (local.get $codes) (i64.const 1)) (i64.const 0xaaaaaaaaaaaaaaaa))
                  (local.get $codes))
                (i64.const 0xaaaaaaaaaaaaaaaa)))
            (local.set $quote
              (i64.and
                (local.get $quote)
                (i64.xor
                  (i64.xor (local.get $codes) (i64.or (local.get $backslash) (global.get $escape)))
                  (i64.const -1))))
            (global.set $escape
              (i64.shr_u (i64.and (local.get $codes) (local.get $backslash)) (i64.const 63)))))

        ;; Each bit the parity of the quotes up to it: set inside strings.
        (local.set $quote (i64.xor (local.get $quote) (i64.shl (local.get $quote) (i64.const 1))))
        (local.set $quote (i64.xor (local.get $quote) (i64.shl (local.get $quote) (i64.const 2))))
        (local.set $quote (i64.xor (local.get $quote) (i64.shl (local.get $quote) (i64.const 4))))
        (local.set $quote (i64.xor (local.get $quote) (i64.shl (local.get $quote) (i64.const 8))))
        (local.set $quote (i64.xor (local.get $quote) (i64.shl (local.get $quote) (i64.const 16))))
        (local.set $quote (i64.xor (local.get $quote) (i64.shl (local.get $quote) (i64.const 32))))
        (local.set $quote (i64.xor (local.get $quote) (global.get $string)))
        (global.set $string (i64.shr_s (local.get $quote) (i64.const 63)))
        (local.set $outside (i64.xor (local.get $quote) (i64.const -1)))

        (local.set $colon
          (i64.and
            (local.get $outside)
            (call $equal (local.get $a) (local.get $b) (local.get $c) (local.get $d) (v128.const i8x16 58 58 58 58 58 58 58 58 58 58 58 58 58 58 58 58))))
        (global.set $members
          (i32.add (global.get $members) (i32.wrap_i64 (i64.popcnt (local.get $colon)))))

        ;; A sum's carry goes through a run of ones, from a backslash to its string's last quote, which is the first bit
        ;; that is clear, and from there through white space. Whatever is left of the summands lies on ones.
        (if (i64.ne (i64.or (local.get $backslash) (i64.or (global.get $written) (global.get $after))) (i64.const 0))
          (then
            (local.set $more (i64.or (i64.and (local.get $backslash) (local.get $quote)) (global.get $written)))
            (local.set $sum (i64.add (local.get $quote) (local.get $more)))
            (global.set $written (i64.extend_i32_u (i64.lt_u (local.get $sum) (local.get $more))))
            (local.set $sum (i64.and (local.get $sum) (local.get $outside)))
            (local.set $more (i64.or (i64.shl (local.get $sum) (i64.const 1)) (global.get $after)))
            (global.set $after (i64.shr_u (local.get $sum) (i64.const 63)))
            (local.set $space
              (i64.and
                (local.get $outside)
                (call $equal
                  (i8x16.sub_sat_u (local.get $a) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
                  (i8x16.sub_sat_u (local.get $b) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
                  (i8x16.sub_sat_u (local.get $c) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
                  (i8x16.sub_sat_u (local.get $d) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32))
                  (v128.const i8x16 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0))))
            (local.set $sum (i64.add (local.get $space) (local.get $more)))
            (global.set $after
              (i64.or
                (global.get $after)
                (i64.extend_i32_u (i64.lt_u (local.get $sum) (local.get $more)))))
            (global.set $escaped
              (i32.or
                (global.get $escaped)
                (i64.ne (i64.and (local.get $sum) (local.get $colon)) (i64.const 0))))))

        ;; With the bit 0x20 set `[` is `{`, and `]` is `}`.
        (local.set $a (v128.or (local.get $a) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32)))
        (local.set $b (v128.or (local.get $b) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32)))
        (local.set $c (v128.or (local.get $c) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32)))
        (local.set $d (v128.or (local.get $d) (v128.const i8x16 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32)))
        (global.set $level
          (i32.add
            (global.get $level)
            (i32.wrap_i64
              (i64.popcnt
                (i64.and
                  (local.get $outside)
                  (call $equal (local.get $a) (local.get $b) (local.get $c) (local.get $d) (v128.const i8x16 123 123 123 123 123 123 123 123 123 123 123 123 123 123 123 123)))))))
        (if (i32.gt_s (global.get $level) (local.get $most))
          (then (return (i32.const -1))))
        (global.set $level
          (i32.sub
            (global.get $level)
            (i32.wrap_i64
              (i64.popcnt
                (i64.and
                  (local.get $outside)
                  (call $equal (local.get $a) (local.get $b) (local.get $c) (local.get $d) (v128.const i8x16 125 125 125 125 125 125 125 125 125 125 125 125 125 125 125 125)))))))
        (br $next)))
    (i32.or (i32.shl (global.get $members) (i32.const 1)) (global.get $escaped))))
