//! What does a loom model take for shared memory?
//!
//! The same calls as `memory.rs`, on loom's atomics: payload in words that are read and written relaxed, so
//! that a model sees stale bytes wherever an acquire or a release is missing.

use std::collections::HashMap;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use loom::sync::{Condvar, Mutex};

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Shared memory of a model.
pub(crate) struct Memory {
    words: HashMap<usize, AtomicU64>,
    halves: HashMap<usize, AtomicU32>,
    /// The kernel's lock over a futex, and those who sleep there.
    bucket: Mutex<()>,
    sleepers: Condvar,
}

impl Memory {
    /// Memory with these words of eight and of four bytes.
    pub(crate) fn new(
        words: impl IntoIterator<Item = usize>,
        halves: impl IntoIterator<Item = usize>,
    ) -> Self {
        Self {
            words: words.into_iter().map(|offset| (offset, AtomicU64::new(0))).collect(),
            halves: halves.into_iter().map(|offset| (offset, AtomicU32::new(0))).collect(),
            bucket: Mutex::new(()),
            sleepers: Condvar::new(),
        }
    }

    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words[&offset]
    }

    pub(crate) fn half(&self, offset: usize) -> &AtomicU32 {
        &self.halves[&offset]
    }

    /// `bytes` begin at a word, and the model gives each whole words.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        for (i, piece) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.word(offset + 8 * i).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    pub(crate) fn append(&self, offset: usize, len: usize, out: &mut BytesMut) {
        for at in (0..len).step_by(8) {
            let word = self.word(offset + at).load(Ordering::Relaxed).to_le_bytes();
            out.put_slice(&word[..(len - at).min(8)]);
        }
    }

    pub(crate) fn sleep(&self, offset: usize, value: u32, _: Duration) {
        let mut bucket = self.bucket.lock().unwrap();
        // A model has no time: who is not woken sleeps for ever, and loom reports it.
        while self.half(offset).load(Ordering::SeqCst) == value {
            bucket = self.sleepers.wait(bucket).unwrap();
        }
    }

    pub(crate) fn rouse(&self, _: usize) {
        drop(self.bucket.lock().unwrap());
        self.sleepers.notify_all();
    }
}
