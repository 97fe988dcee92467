//! The response to one message of a client.

use crate::envelope::ResponseHead;
use crate::metadata::Metadata;
use crate::pieces::Pieces;
use crate::status::Status;

/// A message of a client without a response yet.
pub(super) struct Pending {
    request: apus::tokio::Request,
    echo: u32,
}

impl Pending {
    pub(super) const fn new(request: apus::tokio::Request, echo: u32) -> Self {
        Self { request, echo }
    }

    /// Waits until the client does not wait for the response any more.
    pub(super) fn client_gone(&self) -> apus::ClientWatch {
        self.request.watch_client()
    }

    /// Returns whether and how the end of the client's process is known.
    pub(super) fn client_process(&self) -> Option<apus::ClientWatch> {
        self.request.watch_process()
    }

    /// Sends the response. If the client has ended, the transport has already ended the call.
    pub(super) fn answer(
        self,
        head: ResponseHead,
        data: Pieces,
    ) -> impl Future<Output = ()> + Send + use<> {
        // Encoded now rather than in the future: the head is larger than its bytes.
        let head = ResponseHead { echo: self.echo, ..head };
        let envelope = head.encode_with_room(data.copied_len());
        let payload = data.behind(envelope);
        async move {
            let _ = self.request.reply(payload).await;
        }
    }

    /// Sends a failure.
    pub(super) async fn fail(self, status: Status) {
        let head = Some(Metadata::new());
        self.answer(
            ResponseHead { status: Some(status), head, ..Default::default() },
            Pieces::default(),
        )
        .await;
    }

    /// Sends an empty message.
    pub(super) async fn accept(self) {
        self.answer(ResponseHead::default(), Pieces::default()).await;
    }
}
