//! The routes: a table of exact paths. Any other path is not found.

use std::fmt;

use super::request::{Method, Request};
use super::response::{Asset, Response};

/// The clients that may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Every client of the server: the page itself, which contains no data.
    Page,
    /// Readers: every user on a server of this host alone; clients with the token elsewhere.
    Look,
    /// Only clients with the token: routes that start work or show what users run.
    Act,
}

/// Answers a request; runs on the connection's thread and may take its time.
pub(super) type Handler = Box<dyn Fn(&Request) -> Response + Send + Sync>;

/// The table.
#[derive(Default)]
pub struct Routes {
    table: Vec<Route>,
}

pub(super) struct Route {
    path: &'static str,
    pub(super) method: Method,
    pub(super) access: Access,
    pub(super) handler: Handler,
}

impl Routes {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what is read by GET.
    #[must_use]
    pub fn get(
        self,
        path: &'static str,
        access: Access,
        handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        self.add(Method::Get, path, access, Box::new(handler))
    }

    /// Adds what is done by POST. It needs the token.
    #[must_use]
    pub fn post(
        self,
        path: &'static str,
        handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        self.add(Method::Post, path, Access::Act, Box::new(handler))
    }

    /// Adds a file that is compiled in.
    #[must_use]
    pub fn asset(self, asset: &'static Asset) -> Self {
        self.add(Method::Get, asset.path, Access::Page, Box::new(move |_| Response::asset(asset)))
    }

    fn add(mut self, method: Method, path: &'static str, access: Access, handler: Handler) -> Self {
        self.table.push(Route { path, method, access, handler });
        self
    }

    /// The handler of a request; or the answer, if there is none.
    pub(super) fn find(&self, request: &Request) -> Result<&Route, Response> {
        let method = match request.method() {
            Method::Head => Method::Get,
            other => other,
        };
        let mut others = self.table.iter().filter(|route| route.path == request.path()).peekable();
        if others.peek().is_none() {
            return Err(Response::error(404, "there is nothing at this path"));
        }
        others.find(|route| route.method == method).ok_or_else(|| {
            let (allow, text) = match method {
                Method::Post => ("GET, HEAD", "this path is read with GET"),
                _ => ("POST", "this path is asked with POST"),
            };
            Response::error(405, text).header("Allow", allow)
        })
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.table.iter().map(|route| route.path)).finish()
    }
}
