//! What is served: a table of exact paths. A path that is not in it is nothing.

use std::fmt;

use super::request::{Method, Request};
use super::response::{Asset, Response};

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody whom the server listens to: the page itself, which tells nothing.
    Page,
    /// Who may look: everybody on a server of this host alone, who has the token elsewhere.
    Look,
    /// Who has the token, always: what starts work or tells what users run.
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

    /// Who answers a request; or the answer, if nobody does.
    pub(super) fn find(&self, request: &Request) -> Result<&Route, Response> {
        let wanted = match request.method() {
            Method::Head => Method::Get,
            other => other,
        };
        let mut others = self.table.iter().filter(|route| route.path == request.path()).peekable();
        if others.peek().is_none() {
            return Err(Response::error(404, "there is nothing at this path"));
        }
        others.find(|route| route.method == wanted).ok_or_else(|| {
            let (allow, text) = match wanted {
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
