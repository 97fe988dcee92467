//! The answer to one message of a client.

use crate::envelope::ResponseHead;
use crate::metadata::Metadata;
use crate::status::Status;
use apus::Payload;
use bytes::Bytes;

/// A message of a client that waits for its answer.
pub(super) struct Pending {
    request: apus::tokio::Request,
    echo: u32,
}

impl Pending {
    pub(super) const fn new(request: apus::tokio::Request, echo: u32) -> Self {
        Self { request, echo }
    }

    /// Answers. If the client has gone there is nothing to do: the transport has ended its call.
    pub(super) async fn answer(self, head: ResponseHead, data: impl IntoIterator<Item = Bytes>) {
        let head = ResponseHead { echo: self.echo, ..head };
        let mut payload = Payload::from(head.encode());
        data.into_iter().for_each(|slice| payload.push(slice));
        let _ = self.request.reply(payload).await;
    }

    /// Answers that the call failed.
    pub(super) async fn fail(self, status: Status) {
        let head = Some(Metadata::new());
        self.answer(ResponseHead { status: Some(status), head, ..Default::default() }, []).await;
    }

    /// Answers with an empty message.
    pub(super) async fn accept(self) {
        self.answer(ResponseHead::default(), []).await;
    }
}
