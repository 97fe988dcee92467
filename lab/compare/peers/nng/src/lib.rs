//! NNG: a REQ socket calls a REP socket, over TCP or a Unix socket, with a context for each call.

use std::cell::RefCell;
use std::ffi::{CString, NulError};
use std::io::Write;
use std::net::SocketAddr;

use anng::protocols::reqrep0::{Rep0, Req0};
use anng::{ContextfulSocket, Message, Socket};
use bytes::Bytes;
use compare_kit::{
    Class, Client, Connector, Description, Error, Peer, Server, Waits, answer, calls, free_address,
    name_of, serve_async,
};
use tokio::task::spawn_local;

/// Contexts of a server: maximum number of requests answered concurrently.
const CONTEXTS: usize = 64;

/// NNG between hosts, or between processes of one host.
#[derive(Debug)]
pub struct Nng<const SAME_HOST: bool>;

impl<const SAME_HOST: bool> Peer for Nng<SAME_HOST> {
    fn describe() -> Description {
        let (name, class, way) = if SAME_HOST {
            ("nng-ipc", Class::SameHost, "a Unix socket")
        } else {
            ("nng", Class::Clear, "TCP")
        };
        Description {
            name: name.to_owned(),
            package: Some("anng".to_owned()),
            settings: format!("NNG 1.11, REQ and REP, a context for each call, a runtime of one thread on each side, {way}"),
            advice: "its guide recommends contexts for requests at the same time; TCP_NODELAY is its default"
                .to_owned(),
            // NNG receives in internal threads, and these sleep.
            waits: Waits::Block,
            longest: None,
            is_node: !SAME_HOST,
            grows: !SAME_HOST,
            class,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let bind = server.bind;
        serve_async(server, async move || {
            let address = free_address(bind)?;
            let socket = Rep0::listen(url(address, SAME_HOST)?).await?;
            // Leaked: contexts borrow it until the process exits.
            let socket: &Socket<Rep0> = Box::leak(Box::new(socket));
            for _ in 0..CONTEXTS {
                spawn_local(echo(socket.context()));
            }
            Ok(address)
        })
    }

    fn client(_: &Client) -> Result<Box<dyn Connector>, Error> {
        Ok(calls(async |server| {
            let socket = Req0::dial(url(server, SAME_HOST)?).await?;
            let socket: &Socket<Req0> = Box::leak(Box::new(socket));
            let idle = RefCell::new(Vec::new());
            Ok(async move |request: Bytes| {
                let context = idle.borrow_mut().pop();
                let mut context = context.unwrap_or_else(|| socket.context());
                let sent = context.request(message(&request)?).await;
                let reply = sent.map_err(|(error, _)| error)?.await?;
                idle.borrow_mut().push(context);
                Ok(Bytes::copy_from_slice(reply.as_slice()))
            })
        }))
    }
}

/// Answers one request after another.
async fn echo(mut context: ContextfulSocket<'_, Rep0>) -> Result<(), Error> {
    loop {
        let (request, responder) = context.receive().await?;
        let reply = match answer(request.as_slice()) {
            Some(receipt) => message(&receipt)?,
            None => request,
        };
        responder.reply(reply).await.map_err(|(_, error, _)| error)?;
    }
}

fn message(bytes: &[u8]) -> Result<Message, Error> {
    let mut message = Message::with_capacity(bytes.len());
    message.write_all(bytes)?;
    Ok(message)
}

fn url(address: SocketAddr, is_same_host: bool) -> Result<CString, NulError> {
    CString::new(if is_same_host {
        format!("abstract://{}", name_of(address))
    } else {
        format!("tcp://{address}")
    })
}
