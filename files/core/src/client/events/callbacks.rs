//! Callbacks of the server: recalls of leases, and fences.

use crate::wire::{Callback, CallbackResponse, frame};
use bytes::Bytes;

use super::ending::end_session;
use crate::client::core::Core;
use crate::client::interface::effect::{Clock, ServerCallback};
use crate::client::recalls::recall::start_recall;

/// Handles a callback.
pub(in crate::client) fn handle_callback(
    core: &mut Core,
    clock: &Clock,
    callback: ServerCallback,
    message: Bytes,
) {
    let Core { link, cache, recalls, .. } = core;
    match frame::decode::<Callback>(message).map(|decoded| decoded.message) {
        Ok(Callback::Recall { session, nodes }) if link.session.number == Some(session) => {
            start_recall(link, cache, recalls, Some(callback), nodes);
        }
        Ok(Callback::Fence { session }) if link.session.number == Some(session) => {
            link.output.answer(callback, &CallbackResponse::Recalled { open: Vec::new() });
            end_session(core, clock);
        }
        Ok(_) => link.output.answer(callback, &CallbackResponse::UnknownSession),
        Err(_) => link.output.answer(callback, &CallbackResponse::Malformed),
    }
}
