//! The routes of the page: its files, and the steps that it draws.

use crate::http::{Access, Asset, Request, Response, Routes};
use crate::sampler::Sampler;

static ASSETS: [Asset; 14] = [
    Asset::new("/", "text/html; charset=utf-8", include_bytes!("../assets/index.html")),
    Asset::new("/style.css", "text/css; charset=utf-8", include_bytes!("../assets/style.css")),
    script("/app.js", include_bytes!("../assets/app.js")),
    script("/data.js", include_bytes!("../assets/data.js")),
    script("/chart.js", include_bytes!("../assets/chart.js")),
    script("/charts.js", include_bytes!("../assets/charts.js")),
    script("/steps.js", include_bytes!("../assets/steps.js")),
    script("/curve.js", include_bytes!("../assets/curve.js")),
    script("/view.js", include_bytes!("../assets/view.js")),
    script("/cache.js", include_bytes!("../assets/cache.js")),
    script("/doctor.js", include_bytes!("../assets/doctor.js")),
    script("/flame.js", include_bytes!("../assets/flame.js")),
    script("/format.js", include_bytes!("../assets/format.js")),
    Asset::new("/icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

const fn script(path: &'static str, bytes: &'static [u8]) -> Asset {
    Asset::new(path, "text/javascript; charset=utf-8", bytes)
}

/// The files that are compiled in.
pub fn assets() -> &'static [Asset] {
    &ASSETS
}

/// Adds the page and its steps.
pub fn routes(routes: Routes, sampler: Sampler) -> Routes {
    let routes = ASSETS.iter().fold(routes, Routes::asset);
    let number = |request: &Request, name| {
        request.query(name).and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let week = sampler.clone();
    let routes = routes.get("/api/week", Access::Look, move |request| {
        let [from, to, points] = ["from", "to", "points"].map(|name| number(request, name));
        match week.week(from, to, points) {
            Ok(answer) => Response::json(answer.to_string()),
            Err(why) => Response::error(404, &why),
        }
    });
    routes.get("/api/steps", Access::Look, move |request| {
        let number = |name| number(request, name);
        let known = usize::try_from(number("known")).unwrap_or(0);
        Response::json(sampler.steps(number("since"), known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_has_nothing_from_elsewhere() {
        let compressed: usize = ASSETS.iter().map(|asset| asset.compressed().len()).sum();
        assert!(compressed < 300 << 10, "{compressed} bytes");
        for asset in &ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let outside = text.replace("http://www.w3.org/", "");
            assert!(
                !outside.contains("http://") && !outside.contains("https://"),
                "{}",
                asset.path
            );
            // Text from the host enters the page only as text.
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text.contains(way), "{}: {way}", asset.path);
            }
        }
    }
}
