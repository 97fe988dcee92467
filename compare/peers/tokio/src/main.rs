//! TCP on tokio: length-delimited frames of tokio-util, a task that writes what waits, and one that hands replies to the callers in
//! their order.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::rc::Rc;

use bytes::Bytes;
use compare_kit::{
    Client, Description, Error, Measured, Peer, Server, Waits, answer, measure_calls, run,
    serve_async,
};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

struct Tokio;

impl Peer for Tokio {
    fn describe() -> Description {
        Description {
            name: "tokio".to_owned(),
            package: Some("tokio".to_owned()),
            settings: "a runtime of one thread on each side, one connection, Framed with LengthDelimitedCodec, frames that are ready leave together, TCP_NODELAY".to_owned(),
            advice: "tokio's documentation recommends set_nodelay for requests and replies, and a runtime of one thread for one connection"
                .to_owned(),
            waits: Waits::Block,
            longest: None,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        serve_async(server, async || {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            spawn_local(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    spawn_local(echo(stream));
                }
            });
            Ok(address)
        })
    }

    fn measure(client: &Client) -> Result<Measured, Error> {
        let server = client.server;
        measure_calls(client, async move || {
            let (mut sink, mut replies) = framed(TcpStream::connect(server).await?)?.split();
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
            Ok(async move |request: Bytes| {
                let (caller, reply) = oneshot::channel();
                calls.send((request, caller))?;
                Ok(reply.await?)
            })
        })
    }
}

/// Messages that are written together.
const AT_ONCE: usize = 64;

/// Where a call waits for its reply.
type Caller = oneshot::Sender<Bytes>;

fn framed(stream: TcpStream) -> Result<Framed<TcpStream, LengthDelimitedCodec>, Error> {
    stream.set_nodelay(true)?;
    Ok(LengthDelimitedCodec::builder().new_framed(stream))
}

/// Answers the requests of a connection until its end: those that are there together.
async fn echo(stream: TcpStream) -> Result<(), Error> {
    let (mut sink, requests) = framed(stream)?.split();
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

fn main() -> ExitCode {
    run::<Tokio>()
}
