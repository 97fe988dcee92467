//! Clients whose calls are futures, and asynchronous servers.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apus_bench::contenders::transport::{self, Completions};
use apus_testbed::error::{Doing, Error as TestbedError};
use bytes::Bytes;
use tokio::sync::Notify;

use crate::connector::Connector;
use crate::executor::{Executor, Timer};
use crate::measured::{Window, cpu_nanos};
use crate::message::{MAX_LENGTH, Messages, check_echo, pattern};
use crate::{Client, Error, Measured, Server};

/// Returns the client of a peer whose calls are futures: `connect` returns a function that makes
/// calls on a new connection to a server. All tasks run in a single-threaded runtime.
pub fn calls<Connect, Call>(connect: Connect) -> Box<dyn Connector>
where
    Connect: AsyncFn(SocketAddr) -> Result<Call, Error> + 'static,
    Call: AsyncFn(Bytes) -> Result<Bytes, Error> + 'static,
{
    Box::new(Calls { connect })
}

struct Calls<Connect> {
    connect: Connect,
}

impl<Connect, Call> Connector for Calls<Connect>
where
    Connect: AsyncFn(SocketAddr) -> Result<Call, Error> + 'static,
    Call: AsyncFn(Bytes) -> Result<Bytes, Error> + 'static,
{
    fn measure(self: Box<Self>, client: &Client, executor: &Executor) -> Result<Measured, Error> {
        executor.run(async {
            let state = Rc::new(State {
                call: (self.connect)(client.server).await?,
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

    fn connect(
        self: Box<Self>,
        servers: &[SocketAddr],
        executor: Executor,
    ) -> Result<Box<dyn transport::Client>, Error> {
        let (calls, timer) = executor.run(async {
            let mut calls = Vec::with_capacity(servers.len());
            for &server in servers {
                calls.push(Rc::new((self.connect)(server).await?));
            }
            Ok::<_, Error>((calls, Timer::new()?))
        })?;
        let (ended, pattern) = (Rc::default(), pattern(MAX_LENGTH).into());
        Ok(Box::new(Callers { calls, timer, ended, pattern, executor }))
    }
}

/// Connections to several servers.
struct Callers<Call> {
    calls: Vec<Rc<Call>>,
    timer: Timer,
    ended: Rc<Ended>,
    /// Common prefix of all requests.
    pattern: Bytes,
    executor: Executor,
}

/// Calls that have ended.
#[derive(Default)]
struct Ended {
    calls: RefCell<Completions>,
    any: Notify,
}

impl<Call> transport::Client for Callers<Call>
where
    Call: AsyncFn(Bytes) -> Result<Bytes, Error> + 'static,
{
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), TestbedError> {
        let request = self.pattern.slice(..size as usize);
        let (call, ended) = (self.calls[peer].clone(), self.ended.clone());
        self.executor.spawn(async move {
            let reply = call(request.clone()).await;
            note(
                id,
                reply.and_then(|reply| check_echo(&reply, &request)),
                &mut ended.calls.borrow_mut(),
            );
            ended.any.notify_one();
        });
        Ok(())
    }

    fn poll(&mut self, wait: Duration, ended: &mut Completions) -> Result<(), TestbedError> {
        let waited = self.executor.run(async {
            // Lets new calls start and outstanding calls proceed.
            tokio::task::yield_now().await;
            if wait.is_zero() || !self.ended.calls.borrow().is_empty() {
                return Ok(());
            }
            tokio::select! {
                () = self.ended.any.notified() => Ok(()),
                slept = self.timer.sleep(wait) => slept,
            }
        });
        waited.doing(|| "wait for replies".to_owned())?;
        take_all(&mut self.ended.calls.borrow_mut(), ended);
        Ok(())
    }
}

/// Records the completion of a call.
pub(crate) fn note(id: u32, end: Result<(), Error>, ended: &mut Completions) {
    match end {
        Ok(()) => ended.completed.push(id),
        Err(error) => {
            ended.failed.push(id);
            ended.why.get_or_insert_with(|| error.to_string());
        }
    }
}

fn take_all(from: &mut Completions, to: &mut Completions) {
    to.completed.append(&mut from.completed);
    to.failed.append(&mut from.failed);
    let why = from.why.take();
    to.why = to.why.take().or(why);
}

/// State shared by the callers.
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

/// Runs a server in a single-threaded runtime until it must stop: `begin` starts it and returns its
/// address.
///
/// # Errors
///
/// The server cannot start.
pub fn serve_async<Begin>(server: &mut Server<'_>, begin: Begin) -> Result<(), Error>
where
    Begin: AsyncFnOnce() -> Result<SocketAddr, Error>,
{
    Executor::new()?.run(async {
        let address = begin().await?;
        let stopped = Arc::new(Notify::new());
        let waker = stopped.clone();
        server.stop().wake_with(move || waker.notify_one());
        server.ready(address)?;
        stopped.notified().await;
        Ok(())
    })
}
