//! The response to one message of a client.

use super::state::ServerState;
use crate::code::Code;
use crate::envelope::ResponseHead;
use crate::metadata::Metadata;
use crate::pieces::Pieces;
use crate::status::Status;
use apus::{CommandError, ReplyError};
use std::sync::Arc;

/// A message of a client without a response yet.
pub(super) struct Pending {
    request: apus::tokio::Request,
    echo: u32,
    state: Arc<ServerState>,
}

impl Pending {
    pub(super) const fn new(
        request: apus::tokio::Request,
        echo: u32,
        state: Arc<ServerState>,
    ) -> Self {
        Self { request, echo, state }
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
    /// Returns `false` if the response is too long, so that the client got a failure instead.
    pub(super) fn answer(
        mut self,
        mut head: ResponseHead,
        data: Pieces,
    ) -> impl Future<Output = bool> + Send + use<> {
        if let Some(status) = &mut head.status {
            self.state.shorten(status);
        }
        // Encoded now rather than in the future: the head is larger than its bytes.
        let head = ResponseHead { echo: self.echo, ..head };
        let envelope = head.encode_with_room(data.copied_len());
        let payload = data.behind(envelope);
        async move {
            let replied = self.request.reply_or_keep(payload).await;
            let Err(ReplyError::Rejected(why @ CommandError::TooLarge { .. })) = replied else {
                return true;
            };
            let status = Status::new(Code::ResourceExhausted, format!("the response: {why}"));
            let head = Some(Metadata::new());
            let head =
                ResponseHead { echo: self.echo, head, status: Some(status), ..Default::default() };
            let _ = self.request.reply(head.encode()).await;
            false
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
