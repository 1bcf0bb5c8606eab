// Shows only the entries that have what is typed. Without it the button asks the server for the same.
const field = document.querySelector(".search input");
if (field) {
  const entries = [...document.querySelectorAll(".entry")];
  const texts = entries.map((entry) => entry.textContent.toLocaleLowerCase());
  const told = document.querySelector("#matches");
  field.addEventListener("input", () => {
    const words = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    entries.forEach((entry, place) => {
      const fits = words.every((word) => texts[place].includes(word));
      entry.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    told.textContent = words.length ? `${shown} of ${entries.length} are shown` : "";
  });
}
