//! What must hold: each packet that is opened was sealed by the peer, and is opened once.

use std::collections::{BTreeMap, BTreeSet};

/// Who has sealed and opened what. A packet of the protocol has a serial number as its content.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// Sender of each serial number that was sealed.
    sealed: BTreeMap<u64, usize>,
    opened: BTreeSet<u64>,
    /// Session, sender and number of each packet.
    nonces: BTreeSet<(u64, usize, u64)>,
}

impl Checker {
    /// End `sender` has sealed `serial` in `session`, as the packet with this number.
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

    /// End `receiver` has opened a packet with this content.
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
