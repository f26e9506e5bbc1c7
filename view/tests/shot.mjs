import puppeteer from 'puppeteer-core';
const [url, out, wait = '3000', ...steps] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', pipe: true, args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'] });
const page = await browser.newPage();
page.on('console', (m) => console.log('console', m.text()));
page.on('pageerror', (e) => console.log('error', e));
await page.setViewport({ width: 1440, height: 860, deviceScaleFactor: 1 });
if (process.env.DARK) await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
await page.goto(url);
await new Promise((r) => setTimeout(r, +wait));
for (const s of steps) { if (s.startsWith('dbl:')) await page.click(s.slice(4), { count: 2 }); else await page.click(s); await new Promise((r) => setTimeout(r, 1300)); }
await page.screenshot({ path: out });
await browser.close();
