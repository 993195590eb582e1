export { getDocument, GlobalWorkerOptions } from "pdfjs-dist";
