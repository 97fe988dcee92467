//! Shared memory of a loom model.
//!
//! Offers the calls of `mapping.rs` on loom's atomics. Payload consists of words that are written
//! and read relaxed, so that a model sees stale bytes. Each word has a cell that lets loom detect a
//! write that is not ordered after earlier reads, which relaxed words alone cannot show.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Shared memory of a model.
#[derive(Clone)]
pub(crate) struct Memory(Arc<ModelWords>);

struct ModelWords {
    words: HashMap<usize, AtomicU64>,
    halves: HashMap<usize, AtomicU32>,
    /// Detects concurrent access to the payload in a word.
    payload: HashMap<usize, UnsafeCell<()>>,
    /// The kernel's lock over a futex, and the threads that sleep there.
    bucket: Mutex<()>,
    sleepers: Condvar,
}

// SAFETY: The cells hold no data; loom checks the order of accesses to them.
unsafe impl Sync for ModelWords {}

impl Memory {
    /// Returns memory with these words of eight and of four bytes.
    pub(crate) fn new(
        words: impl IntoIterator<Item = usize>,
        halves: impl IntoIterator<Item = usize>,
    ) -> Self {
        let words: Vec<_> = words.into_iter().collect();
        let payload = words.iter().map(|offset| (*offset, UnsafeCell::new(()))).collect();
        let shared = ModelWords {
            payload,
            words: words.into_iter().map(|offset| (offset, AtomicU64::new(0))).collect(),
            halves: halves.into_iter().map(|offset| (offset, AtomicU32::new(0))).collect(),
            bucket: Mutex::new(()),
            sleepers: Condvar::new(),
        };
        Self(Arc::new(shared))
    }

    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.0.words[&offset]
    }

    pub(crate) fn words<const N: usize>(&self, offset: usize) -> [&AtomicU64; N] {
        std::array::from_fn(|i| self.word(offset + 8 * i))
    }

    pub(crate) fn prefetch(&self, _: usize) {}

    pub(crate) fn demote(&self, _: usize, _: usize) {}

    pub(crate) fn half(&self, offset: usize) -> &AtomicU32 {
        &self.0.halves[&offset]
    }

    /// Writes `bytes`, which start at a word; a model writes only whole words.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        for (i, piece) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.0.payload[&(offset + 8 * i)].with_mut(|_| ());
            self.word(offset + 8 * i).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self, offset: usize, len: usize) -> Bytes {
        let mut copy = BytesMut::with_capacity(len);
        self.append(offset, len, &mut copy);
        copy.freeze()
    }

    pub(crate) fn append(&self, offset: usize, len: usize, out: &mut BytesMut) {
        for at in (0..len).step_by(8) {
            self.0.payload[&(offset + at)].with(|_| ());
            let word = self.word(offset + at).load(Ordering::Relaxed).to_le_bytes();
            out.put_slice(&word[..(len - at).min(8)]);
        }
    }

    pub(crate) fn futex_wait(&self, offset: usize, value: u32, _: Duration) {
        let mut bucket = self.0.bucket.lock().unwrap();
        // A model has no time: a thread that is not woken sleeps forever, and loom reports a
        // deadlock.
        while self.half(offset).load(Ordering::SeqCst) == value {
            bucket = self.0.sleepers.wait(bucket).unwrap();
        }
    }

    pub(crate) fn futex_wake(&self, _: usize) {
        drop(self.0.bucket.lock().unwrap());
        self.0.sleepers.notify_all();
    }
}
