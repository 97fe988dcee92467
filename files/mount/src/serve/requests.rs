//! Requests that wait for their responses, by their names in the core.

use std::collections::HashMap;

use apus::{Payload, Request};
use apus_fs_core::server::CallToken;
use apus_fs_core::wire::frame::decode;
use apus_fs_core::wire::{Decoded, Request as FileRequest, SessionRequest};
use bytes::Bytes;

/// Messages of this many bytes or more are not decoded to count their reads. A client requests few
/// ranges at once.
const LONG: usize = 512;

/// Requests that wait for their responses.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: HashMap<CallToken, Request>,
    last: u64,
}

impl Requests {
    /// Keeps a request and returns its name.
    pub(super) fn add(&mut self, request: Request) -> CallToken {
        self.last += 1;
        let call = CallToken(self.last);
        self.waiting.insert(call, request);
        call
    }

    /// Responds to a request.
    pub(super) fn respond(&mut self, call: CallToken, header: Bytes, payload: Vec<Bytes>) {
        let Some(request) = self.waiting.remove(&call) else { return };
        let message = Payload::from_iter(std::iter::once(header).chain(payload));
        // A client that no longer waits repeats the request if it still needs the response.
        let _ = request.reply(message);
    }
}

/// Returns the number of bytes of files that a request reads; 0 if it is not a short read request.
pub(super) fn bytes_to_read(message: &Bytes) -> u64 {
    if message.len() >= LONG {
        return 0;
    }
    match decode::<FileRequest>(message.clone()) {
        Ok(Decoded {
            message: FileRequest::Of { request: SessionRequest::Read { ranges }, .. },
            ..
        }) => ranges.iter().map(|range| u64::from(range.length)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_fs_core::wire::frame::encode;
    use apus_fs_core::wire::{Handle, Ino, NodeRange};

    #[test]
    fn only_reads_have_bytes_to_read() {
        let file = Handle { ino: Ino(7), proof: 0 };
        let of = |request| encode(&FileRequest::Of { session: 1, request });
        let range = NodeRange { file, offset: 5, length: 1_000 };
        let read = of(SessionRequest::Read { ranges: vec![range, range] });
        assert_eq!(bytes_to_read(&read), 2_000);
        assert_eq!(bytes_to_read(&read.slice(..read.len() - 1)), 0);
        assert_eq!(
            bytes_to_read(&of(SessionRequest::GetXattr { node: file, name: "a".into() })),
            0
        );
        assert_eq!(bytes_to_read(&Bytes::new()), 0);
    }
}
