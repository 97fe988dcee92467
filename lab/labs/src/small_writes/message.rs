//! Commands and replies.
//!
//! A command has 64 bytes; the first 4 hold its length, as in the file system of 2008. The server
//! echoes it.

use apus::Bytes;
use apus_workload::{Stream, rng};
use rand::Rng;

use apus_testbed::error::Error;

/// Bytes of a command.
pub(super) const LENGTH: usize = 64;

/// Bytes of its first piece.
pub(super) const HEAD: usize = 4;

/// Number of different commands, used in turn, so that a late reply is not mistaken for the next
/// one.
const DIFFERENT: usize = 16;

/// Commands, created before times are taken.
pub(super) struct Messages {
    messages: Vec<Bytes>,
}

impl Messages {
    pub(super) fn draw(seed: u64) -> Self {
        let mut chance = rng(seed, Stream::Sizes);
        let mut draw = |_| {
            let mut bytes = [0; LENGTH];
            chance.fill_bytes(&mut bytes);
            bytes[..HEAD].copy_from_slice(&(LENGTH as u32).to_be_bytes());
            Bytes::copy_from_slice(&bytes)
        };
        Self { messages: (0..DIFFERENT).map(&mut draw).collect() }
    }

    /// Returns the command of that exchange.
    pub(super) fn get(&self, exchange: u64) -> &Bytes {
        &self.messages[exchange as usize % DIFFERENT]
    }

    /// Checks that a reply belongs to this exchange.
    ///
    /// # Errors
    ///
    /// It does not.
    pub(super) fn expect(&self, exchange: u64, reply: &[u8]) -> Result<(), Error> {
        if self.get(exchange) == reply {
            return Ok(());
        }
        Err(Error::Peer(format!("the reply to exchange {exchange} is not what was sent")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_follow_each_other_differ_and_begin_with_their_length() {
        let messages = Messages::draw(7);
        assert_eq!(messages.get(0)[..HEAD], [0, 0, 0, 64]);
        messages.expect(3, &messages.get(3).clone()).unwrap();
        messages.expect(19, messages.get(3)).unwrap();
        assert!(messages.expect(3, messages.get(2)).is_err(), "the previous command");
        assert!(messages.expect(3, &messages.get(3)[..63]).is_err());
    }
}
