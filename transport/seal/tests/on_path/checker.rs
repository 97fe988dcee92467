//! Checker: each opened packet was sealed by the peer and is opened once.

use std::collections::{BTreeMap, BTreeSet};

/// Record of sealed and opened packets. The content of a packet is its serial number.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// Sender of each sealed serial number.
    sealed: BTreeMap<u64, usize>,
    opened: BTreeSet<u64>,
    /// Session, sender and number of each packet.
    nonces: BTreeSet<(u64, usize, u64)>,
}

impl Checker {
    /// Records that end `sender` sealed `serial` in `session`, under this packet number.
    pub(crate) fn sealed(
        &mut self,
        seed: u64,
        sender: usize,
        session: u64,
        number: u64,
        serial: u64,
    ) {
        assert!(
            self.nonces.insert((session, sender, number)),
            "seed {seed}: number {number} is used twice in session {session} (SEAL-3)"
        );
        self.sealed.insert(serial, sender);
    }

    /// Records that end `receiver` opened a packet with this content.
    pub(crate) fn opened(&mut self, seed: u64, receiver: usize, serial: u64) {
        match self.sealed.get(&serial) {
            Some(sender) if *sender != receiver => {}
            other => {
                panic!("seed {seed}: {serial} was opened by {receiver}, and sealed by {other:?}")
            }
        }
        assert!(self.opened.insert(serial), "seed {seed}: {serial} was opened twice (SEAL-5)");
    }
}
