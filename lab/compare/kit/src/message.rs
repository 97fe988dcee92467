//! Contents of requests and replies, the same for all peers.
//!
//! ```text
//!   byte 0      kind of reply: 0 the request itself, 1 a receipt
//!   bytes 1..9  number of the call
//!   the rest    a pattern
//! ```
//!
//! A receipt consists of the head and the last byte of the request.

use bytes::Bytes;

use crate::{Error, Work};

/// Maximum length of a request.
pub const MAX_LENGTH: usize = 1 << 20;

/// Bytes of a head.
const HEAD: usize = 9;

/// Requests a receipt.
const RECEIPT: u8 = 1;

/// Bytes of a receipt.
const RECEIPT_LENGTH: usize = HEAD + 1;

/// Returns the receipt if the request asks for one; `None` if the reply is the request itself.
#[must_use]
pub fn answer(request: &[u8]) -> Option<[u8; RECEIPT_LENGTH]> {
    let (head, last) = (request.get(..HEAD)?, request.last()?);
    let mut receipt = [0; RECEIPT_LENGTH];
    receipt[..HEAD].copy_from_slice(head);
    receipt[HEAD] = *last;
    (head[0] == RECEIPT).then_some(receipt)
}

/// Returns the bytes of an echo request; a shorter request is a prefix of a longer one.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

/// Compares a reply with the request that it echoes.
///
/// # Errors
///
/// The reply differs from the request.
pub(crate) fn check_echo(reply: &[u8], request: &[u8]) -> Result<(), Error> {
    if reply == request { Ok(()) } else { Err(wrong(reply, request, 0)) }
}

/// Returns the call number of a request or reply, for peers that match them on the client.
#[must_use]
pub fn number(message: &[u8]) -> Option<u64> {
    message.get(1..HEAD)?.try_into().ok().map(u64::from_le_bytes)
}

/// The messages of a work.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    work: Work,
    template: Vec<u8>,
}

impl Messages {
    pub(crate) fn of(work: Work) -> Self {
        let mut template = pattern(work.size());
        template[0] = if work.is_echo() { 0 } else { RECEIPT };
        Self { work, template }
    }

    /// Makes the template the request of this call, and returns it.
    pub(crate) fn request(&mut self, call: u64) -> &[u8] {
        self.template[1..HEAD].copy_from_slice(&call.to_le_bytes());
        &self.template
    }

    /// Returns a copy of the request of this call.
    pub(crate) fn owned_request(&self, call: u64) -> Bytes {
        let mut request = self.template.clone();
        request[1..HEAD].copy_from_slice(&call.to_le_bytes());
        request.into()
    }

    /// Returns the call that a reply answers.
    ///
    /// # Errors
    ///
    /// The message is not a reply.
    pub(crate) fn call_of(&self, reply: &[u8]) -> Result<u64, Error> {
        let number = number(reply).ok_or("a reply without a head")?;
        let is_right = if self.work.is_echo() {
            reply[0] == self.template[0] && reply[HEAD..] == self.template[HEAD..]
        } else {
            reply.len() == RECEIPT_LENGTH && reply[HEAD] == self.template[self.template.len() - 1]
        };
        if is_right { Ok(number) } else { Err(wrong(reply, &self.template, HEAD)) }
    }
}

/// Returns the error of a reply that differs from byte `first` on.
fn wrong(reply: &[u8], template: &[u8], first: usize) -> Error {
    let place = reply.iter().zip(template).skip(first).position(|(one, other)| one != other);
    format!(
        "a wrong reply: {} bytes to {}, the first difference at {:?}",
        reply.len(),
        template.len(),
        place.map(|place| place + first)
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_the_request() {
        let mut messages = Messages::of(Work::RoundTrips { size: 100 });
        let request = messages.request(7).to_vec();
        assert_eq!(answer(&request), None);
        assert_eq!(messages.call_of(&request).unwrap(), 7);
        let mut wrong = request.clone();
        wrong[60] ^= 1;
        assert!(messages.call_of(&wrong).unwrap_err().to_string().contains("Some(60)"));
        assert!(messages.call_of(&request[..99]).is_err());
    }

    #[test]
    fn a_receipt_has_the_number_and_the_last_byte() {
        let work = Work::Throughput { size: 500_000, outstanding: 2 };
        let mut messages = Messages::of(work);
        let receipt = answer(messages.request(9)).unwrap();
        assert_eq!(messages.call_of(&receipt).unwrap(), 9);
        let mut wrong = receipt;
        wrong[HEAD] ^= 1;
        assert!(messages.call_of(&wrong).is_err());
    }

    #[test]
    fn an_echo_of_any_length_begins_with_the_pattern() {
        let pattern = pattern(300);
        for length in [1, HEAD, 300] {
            let request = &pattern[..length];
            assert_eq!(answer(request), None);
            check_echo(request, request).unwrap();
        }
        let error = check_echo(&pattern[..7], &pattern[..8]).unwrap_err().to_string();
        assert!(error.contains("7 bytes to 8"), "{error}");
    }

    #[test]
    fn what_is_no_request_is_echoed() {
        assert_eq!(answer(&[]), None);
        assert_eq!(answer(&[RECEIPT; HEAD - 1]), None);
    }
}
