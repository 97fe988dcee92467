//! Requests and replies on a tokio stream: length-delimited frames of tokio-util, a task that
//! writes queued messages, and a task that passes replies to the callers in order.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use compare_kit::{Error, answer};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use tokio_util::codec::LengthDelimitedCodec;

/// Maximum messages written together.
const AT_ONCE: usize = 64;

/// Where a call waits for its reply.
type Caller = oneshot::Sender<Bytes>;

/// Answers the requests of a connection until its end; requests that arrive together are answered
/// together.
///
/// # Errors
///
/// The connection is broken.
pub async fn echo(stream: impl AsyncRead + AsyncWrite) -> Result<(), Error> {
    let (mut sink, requests) = LengthDelimitedCodec::builder().new_framed(Box::pin(stream)).split();
    let mut requests = requests.ready_chunks(AT_ONCE);
    while let Some(together) = requests.next().await {
        for request in together {
            let request = request?.freeze();
            let receipt = answer(&request);
            let reply = receipt.map_or(request, |receipt| receipt.to_vec().into());
            sink.feed(reply).await?;
        }
        sink.flush().await?;
    }
    Ok(())
}

/// Returns a function that makes calls on a connection.
pub fn caller(
    stream: impl AsyncRead + AsyncWrite + 'static,
) -> impl AsyncFn(Bytes) -> Result<Bytes, Error> {
    let (mut sink, mut replies) =
        LengthDelimitedCodec::builder().new_framed(Box::pin(stream)).split();
    let (calls, mut to_send) = mpsc::unbounded_channel::<(Bytes, Caller)>();
    let waiting: Rc<RefCell<VecDeque<Caller>>> = Rc::default();
    let waiters = waiting.clone();
    spawn_local(async move {
        while let Some(Ok(reply)) = replies.next().await {
            let caller = waiters.borrow_mut().pop_front();
            if let Some(caller) = caller {
                // A caller that has ended needs no reply.
                let _ = caller.send(reply.freeze());
            }
        }
    });
    spawn_local(async move {
        let mut batch = Vec::new();
        while to_send.recv_many(&mut batch, AT_ONCE).await > 0 {
            for (request, caller) in batch.drain(..) {
                waiting.borrow_mut().push_back(caller);
                sink.feed(request).await?;
            }
            sink.flush().await?;
        }
        Ok::<(), Error>(())
    });
    async move |request| {
        let (caller, reply) = oneshot::channel();
        calls.send((request, caller))?;
        Ok(reply.await?)
    }
}
