//! Measures a client whose calls are futures, and serves where servers are.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use crate::measured::{Window, cpu_nanos};
use crate::message::Messages;
use crate::{Client, Error, Measured, Server};

/// Measures the work of a client: `connect` returns what makes a call. Everything runs in a runtime of one thread.
///
/// # Errors
///
/// A call has failed, or its reply is wrong.
pub fn measure_calls<Call, Connect>(client: &Client, connect: Connect) -> Result<Measured, Error>
where
    Call: AsyncFn(Bytes) -> Result<Bytes, Error> + 'static,
    Connect: AsyncFnOnce() -> Result<Call, Error>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let state = Rc::new(State {
            call: connect().await?,
            messages: Messages::of(client.work),
            next: Cell::new(0),
            window: RefCell::new(Window::after_warm_up(client.length)),
        });
        let callers: Vec<_> = (0..client.work.outstanding())
            .map(|_| tokio::task::spawn_local(make_calls(state.clone())))
            .collect();
        for caller in callers {
            caller.await??;
        }
        let state = Rc::into_inner(state).ok_or("a caller has not ended")?;
        Ok(state.window.into_inner().close(cpu_nanos()))
    })
}

/// What the callers have in common.
struct State<Call> {
    call: Call,
    messages: Messages,
    next: Cell<u64>,
    window: RefCell<Window>,
}

/// Makes calls one after another until the window closes.
async fn make_calls<Call>(state: Rc<State<Call>>) -> Result<(), Error>
where
    Call: AsyncFn(Bytes) -> Result<Bytes, Error>,
{
    loop {
        let number = state.next.replace(state.next.get() + 1);
        let request = state.messages.owned_request(number);
        let began = Instant::now();
        let reply = (state.call)(request).await?;
        let ended = Instant::now();
        if state.messages.call_of(&reply)? != number {
            return Err("a reply to another request".into());
        }
        if !state.window.borrow_mut().count(began, ended) {
            return Ok(());
        }
    }
}

/// Runs a server in a runtime of one thread until it must stop: `begin` starts it and returns its address.
///
/// # Errors
///
/// The server cannot begin.
pub fn serve_async<Begin>(server: &mut Server<'_>, begin: Begin) -> Result<(), Error>
where
    Begin: AsyncFnOnce() -> Result<std::net::SocketAddr, Error>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let address = begin().await?;
        let stopped = Arc::new(Notify::new());
        let waker = stopped.clone();
        server.stop().wake_with(move || waker.notify_one());
        server.ready(address)?;
        stopped.notified().await;
        Ok(())
    })
}
