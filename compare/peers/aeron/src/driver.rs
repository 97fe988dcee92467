//! The media driver of a process, and where it is run.

use std::ffi::{CString, NulError};
use std::fs;
use std::net::SocketAddr;

use compare_kit::Error;
use rusteron_media_driver::bindings::aeron_threading_mode_enum as Mode;
use rusteron_media_driver::{
    Aeron, AeronCError, AeronContext, AeronDriver, AeronDriverContext, EmbeddedMediaDriver,
};

/// Bytes of a term, of which the longest message is an eighth.
const TERM: usize = 8 << 20;
/// Bytes of a packet.
const MTU: usize = 8 << 10;
/// Bytes of buffers and windows, if the system allows that.
const WINDOW: usize = 2 << 20;

/// A media driver.
pub(crate) struct Driver {
    folder: CString,
    run: Run,
}

/// What runs a driver.
enum Run {
    /// The thread that sends and receives.
    Invoked(Box<AeronDriver>),
    /// A thread of its own.
    Thread { _ends_with_it: EmbeddedMediaDriver },
    /// Another process.
    Elsewhere,
}

impl Driver {
    /// The driver of a side.
    pub(crate) fn open(name: &str, is_same_host: bool, is_server: bool) -> Result<Self, Error> {
        if is_same_host { Self::shared(name, is_server) } else { Self::invoked(name, is_server) }
    }

    /// A driver of one side of a network, which [`Driver::work`] runs.
    fn invoked(name: &str, is_server: bool) -> Result<Self, Error> {
        let folder = folder(&format!("{name}-{}", if is_server { "server" } else { "client" }))?;
        let context = context(&folder)?;
        context.set_threading_mode(Mode::AERON_THREADING_MODE_INVOKER)?;
        let driver = AeronDriver::new(&context)?;
        driver.start(true)?;
        Ok(Self { folder, run: Run::Invoked(Box::new(driver)) })
    }

    /// The driver of both sides, which is the server's.
    fn shared(name: &str, is_server: bool) -> Result<Self, Error> {
        let folder = folder(name)?;
        if !is_server {
            return Ok(Self { folder, run: Run::Elsewhere });
        }
        let context = context(&folder)?;
        context.set_threading_mode(Mode::AERON_THREADING_MODE_SHARED)?;
        let driver = AeronDriver::launch_embedded_guard(context, false);
        Ok(Self { folder, run: Run::Thread { _ends_with_it: driver } })
    }

    /// Connects to the driver.
    pub(crate) fn connect(&self) -> Result<Aeron, Error> {
        let context = AeronContext::new()?;
        context.set_dir(&self.folder)?;
        context.set_pre_touch_mapped_memory(true)?;
        let aeron = Aeron::new(&context)?;
        aeron.start()?;
        Ok(aeron)
    }

    /// Does what the driver has to do, if this thread runs it, and returns how much that was.
    pub(crate) fn work(&self) -> Result<i32, AeronCError> {
        match &self.run {
            Run::Invoked(driver) => driver.main_do_work(),
            Run::Thread { .. } | Run::Elsewhere => Ok(0),
        }
    }

    /// Runs the driver until it has done what was asked of it.
    pub(crate) fn until<T>(
        &self,
        poll: impl Fn() -> Result<Option<T>, AeronCError>,
    ) -> Result<T, Error> {
        loop {
            if let Some(done) = poll()? {
                return Ok(done);
            }
            self.work()?;
        }
    }
}

/// The channels of requests and replies, and their streams.
pub(crate) fn channels(
    server: SocketAddr,
    is_same_host: bool,
) -> Result<[(CString, i32); 2], NulError> {
    let channel = |ip| {
        let port = server.port();
        let udp = || format!("aeron:udp?endpoint={ip}:{port}");
        CString::new(if is_same_host { "aeron:ipc".to_owned() } else { udp() })
    };
    Ok([(channel("127.0.0.1")?, 1), (channel("127.0.0.2")?, 2)])
}

/// The folder of a driver, in memory as its documentation recommends.
fn folder(name: &str) -> Result<CString, Error> {
    Ok(CString::new(format!("/dev/shm/{name}"))?)
}

fn context(folder: &CString) -> Result<AeronDriverContext, Error> {
    let context = AeronDriverContext::new()?;
    context.set_dir(folder)?;
    context.set_dir_delete_on_start(true)?;
    context.set_dir_delete_on_shutdown(true)?;
    context.set_term_buffer_sparse_file(false)?;
    context.set_term_buffer_length(TERM)?;
    context.set_ipc_term_buffer_length(TERM)?;
    context.set_mtu_length(MTU)?;
    // A driver with a window that is longer than its buffers does not start.
    let allowed = fs::read_to_string("/proc/sys/net/core/rmem_max")?.trim().parse()?;
    let window = WINDOW.min(allowed);
    context.set_socket_so_rcvbuf(window)?;
    context.set_socket_so_sndbuf(window)?;
    context.set_rcv_initial_window_length(window)?;
    Ok(context)
}
